import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import { startQuotingProvider, type QuotingProvider } from '../support/quoting-provider';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, untilTerminal } from '../support/stack';
import OpenAI from 'openai';

const SECRET = 'Zk7-a-header-value-to-keep-secret-19c4';
const LINES = 40;
const KEY = 'sk-Qv3-a-key-of-a-provider-to-keep-secret-77d2';
const CUSTOM_ID = 'Hy5-an-id-that-stays-with-the-client';

let provider: QuotingProvider;
let keyFolder: string;
let backend: RecordingBackend;
let stack: TestStack;

beforeAll(async () => {
  [backend, provider] = await Promise.all([startRecordingBackend(20), startQuotingProvider()]);
  keyFolder = mkdtempSync(join(tmpdir(), 'nightshift-key-'));
  const keyFile = join(keyFolder, 'key');
  writeFileSync(keyFile, KEY);
  const far = { type: 'openai', url: provider.url, api_key_file: keyFile };
  stack = await startStack({
    config: {
      global_inference_gateway: { url: backend.url, initial_backoff: '10ms', max_backoff: '20ms' },
      pass_through_headers: ['x-user-secret'],
      providers: { far: { ...far, poll_initial: '200ms', poll_max: '500ms' } },
      delegates: { delegated: { provider: 'far', generations: 1 } },
      log: { level: 'trace' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await Promise.all([backend?.close(), provider?.close()]);
  rmSync(keyFolder, { recursive: true, force: true });
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

async function submit(headers: Record<string, string>, text: string) {
  const file = await stack.client.files.create({
    file: await OpenAI.toFile(Buffer.from(text), 'input.jsonl'),
    purpose: 'batch',
  });
  const params = {
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  } as const;
  return stack.client.batches.create(params, { headers });
}

/** The histories of workflows as text, with all payloads. */
async function historiesOf(...batches: string[]): Promise<string> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    const client = new Client({ connection });
    const texts = batches.map(async (batch) => {
      const history = await client.workflow.getHandle(batch).fetchHistory();
      expect(history.events?.length).toBeGreaterThan(3);
      return JSON.stringify(history, (_, value: unknown) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
      );
    });
    return (await Promise.all(texts)).join('\n');
  } finally {
    await connection.close();
  }
}

it('a pass-through header is in no log at any level, in no workflow history and in no file', async () => {
  // Failures and retries write log lines of their own.
  let refusals = 10;
  backend.judge = () => (refusals-- > 0 ? { status: 503, body: '{"error":"busy"}' } : null);
  const headers = { 'x-user-secret': SECRET };
  const { id } = await submit(headers, chatLines(LINES));
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
  const cut = await submit(headers, chatLines(LINES));
  await stack.client.batches.cancel(cut.id);
  expect((await untilTerminal(stack.client, cut.id)).status).toBe('cancelled');

  expect(backend.seen.length).toBeGreaterThanOrEqual(LINES + 10);
  expect(backend.seen.every((seen) => seen.headers['x-user-secret'] === SECRET)).toBe(true);

  expect(await historiesOf(id, cut.id)).not.toContain(SECRET);
  expect(stack.logOf('worker')).toMatch(/"level":"(trace|debug)"/);
  expect(filesWith(stack.dataDir, SECRET)).toEqual([]);
  // The search works: it finds an answer to the first batch.
  expect(filesWith(stack.objectPath(), 'received ').length).toBeGreaterThan(0);
}, 180_000);

it('the key of a provider stays here, and headers and ids of clients do not reach the provider', async () => {
  const headers = { 'x-user-secret': SECRET };
  const text = chatLines(LINES, () => 'delegated').replaceAll('"c-', `"${CUSTOM_ID}-`);
  provider.failNext(1);
  const { id } = await submit(headers, text);
  const answered = await untilTerminal(stack.client, id);
  expect(answered).toMatchObject({ status: 'completed', request_counts: { completed: LINES } });
  provider.failJobs();
  const failed = await submit(headers, text);
  const refused = await untilTerminal(stack.client, failed.id);
  expect(refused).toMatchObject({ status: 'completed', request_counts: { failed: LINES } });

  const sent = provider.received.map(
    (request) => JSON.stringify(request.headers) + request.body.toString(),
  );
  expect(sent.length).toBeGreaterThan(10);
  expect(sent.every((request) => request.includes(KEY))).toBe(true);
  expect(sent.filter((request) => /a-header-value|stays-with-the-client/.test(request))).toEqual(
    [],
  );

  const histories = await historiesOf(id, failed.id);
  for (const secret of [SECRET, KEY, CUSTOM_ID]) expect(histories).not.toContain(secret);
  const errors = await stack.client.files.content(refused.error_file_id ?? '');
  const lines = await errors.text();
  expect(lines).toContain(CUSTOM_ID);
  expect(lines).not.toContain(KEY);
  const jobs = await fetch(`${stack.baseUrl}/nightshift/batches/${failed.id}/jobs`);
  expect(await jobs.text()).toContain('"invalid_key"');
  expect(stack.logOf('worker')).toContain('call to a provider failed');
  expect(stack.logOf('worker')).not.toContain(CUSTOM_ID);
  // Rows, objects, logs and the files of PostgreSQL and Temporal. Words around the masked key are found.
  expect(filesWith(stack.dataDir, KEY)).toEqual([]);
  expect(filesWith(stack.dataDir, SECRET)).toEqual([]);
  expect(filesWith(stack.dataDir, 'Incorrect API key provided').length).toBeGreaterThan(0);
}, 120_000);
