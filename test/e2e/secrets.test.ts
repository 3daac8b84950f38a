import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, untilTerminal } from '../support/stack';
import OpenAI from 'openai';

const SECRET = 'Zk7-a-header-value-to-keep-secret-19c4';
const LINES = 40;

let backend: RecordingBackend;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend(20);
  stack = await startStack({
    config: {
      global_inference_gateway: { url: backend.url, initial_backoff: '10ms', max_backoff: '20ms' },
      pass_through_headers: ['x-user-secret'],
      log: { level: 'trace' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);

/** The secret in plain text, in hex, and as part of a Base64 text at each of the three alignments. */
function shapesOf(secret: string): Buffer[] {
  const inside = [0, 1, 2].map((shift) => {
    const text = Buffer.from(' '.repeat(shift) + secret).toString('base64');
    return text.slice(4, -4);
  });
  return [secret, ...inside, Buffer.from(secret).toString('hex')].map((text) => Buffer.from(text));
}

/** Files below a folder that contain the secret in any of its encodings. */
function filesWith(folder: string, secret: string): string[] {
  const shapes = shapesOf(secret);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const bytes = readFileSync(path);
      return shapes.some((shape) => bytes.includes(shape));
    });
}

async function submit(headers: Record<string, string>, lines: number) {
  const file = await stack.client.files.create({
    file: await OpenAI.toFile(Buffer.from(chatLines(lines)), 'input.jsonl'),
    purpose: 'batch',
  });
  const params = {
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  } as const;
  return stack.client.batches.create(params, { headers });
}

it('a pass-through header is in no log at any level, in no workflow history and in no file', async () => {
  // Failures and retries write log lines of their own.
  let refusals = 10;
  backend.judge = () => (refusals-- > 0 ? { status: 503, body: '{"error":"busy"}' } : null);
  const headers = { 'x-user-secret': SECRET };
  const { id } = await submit(headers, LINES);
  const refused = await stack.client.batches
    .create(
      {
        input_file_id: 'file-none',
        endpoint: '/v1/nothing' as '/v1/responses',
        completion_window: '24h',
      },
      { headers },
    )
    .then(
      () => null,
      (error: unknown) => error,
    );
  expect(refused).toBeInstanceOf(OpenAI.BadRequestError);
  expect((await untilTerminal(stack.client, id)).status).toBe('completed');
  // It still runs when the cancel comes.
  backend.latencyMs = 1_000;
  const cut = await submit(headers, LINES);
  await stack.client.batches.cancel(cut.id);
  expect((await untilTerminal(stack.client, cut.id)).status).toBe('cancelled');

  expect(backend.seen.length).toBeGreaterThanOrEqual(LINES + 10);
  expect(backend.seen.every((seen) => seen.headers['x-user-secret'] === SECRET)).toBe(true);

  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    const client = new Client({ connection });
    for (const batch of [id, cut.id]) {
      const history = await client.workflow.getHandle(batch).fetchHistory();
      expect(history.events?.length).toBeGreaterThan(3);
      const payloads = JSON.stringify(history, (_, value: unknown) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
      );
      expect(payloads).not.toContain(SECRET);
    }
  } finally {
    await connection.close();
  }
  expect(stack.logOf('worker')).toMatch(/"level":"(trace|debug)"/);
  expect(filesWith(stack.dataDir, SECRET)).toEqual([]);
  // The search works: it finds an answer to the first batch.
  expect(filesWith(stack.objectPath(), 'received ').length).toBeGreaterThan(0);
}, 180_000);
