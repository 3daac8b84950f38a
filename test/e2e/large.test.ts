import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import OpenAI from 'openai';
import type { LocalServer } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import { fileIndexKey, fileKey } from '../../core/names/object-names';
import { tenantHash } from '../../storage/objects/tenant-hash';
import { hasObject } from '../faults/frozen-worker';
import { createBatch, outcomeOf } from './run-batch';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack, untilTerminal } from '../support/stack';

const CHAT = { endpoint: '/v1/chat/completions' };
const MIB = 1024 * 1024;
const MAX_LINE = 16 * MIB;
/** A file of the largest size and a million lines take minutes: they run with `NIGHTSHIFT_LARGE=1`. */
const isLarge = process.env['NIGHTSHIFT_LARGE'] === '1';

let server: LocalServer;
let stack: TestStack;
let firstRequestAtMs = 0;
const lengths: number[] = [];

beforeAll(async () => {
  server = await startLocalServer(({ body }, response) => {
    if (firstRequestAtMs === 0) firstRequestAtMs = performance.now();
    lengths.push(body.length);
    // Keeping all bodies would use too much memory of this process.
    server.received.length = 0;
    response.end(
      '{"model":"m","usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
    );
  });
  stack = await startStack({
    config: {
      global_inference_gateway: { url: server.url, request_timeout: '60s' },
      concurrency: { per_model: 50 },
      limits: { max_requests: 1_000_000 },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await server?.close();
}, 60_000);
beforeEach(() => {
  lengths.length = 0;
  firstRequestAtMs = 0;
});

/** A line of exactly `bytes` bytes, without a line feed. */
function lineOf(bytes: number, customId: string): string {
  const [head, tail] = [
    `{"custom_id":"${customId}","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"`,
    '"}]}}',
  ];
  return `${head}${'x'.repeat(bytes - head.length - tail.length)}${tail}`;
}

/** The most memory that a worker has held since it started, MiB. */
function workerPeakMib(): number {
  const peaks = stack.pidsOf('worker').map((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  });
  return Math.max(...peaks);
}

interface Run {
  readonly fileId: string;
  readonly toFirstRequestMs: number;
  readonly tookMs: number;
  readonly peakMib: number;
}

/** Uploads `count` lines as a stream, runs them and checks every line of the output. */
async function runLines(count: number, bytes: number, timeoutMs: number): Promise<Run> {
  const file = await stack.client.files.create({
    file: await OpenAI.toFile(Readable.from(blocks(count, bytes)), 'input.jsonl'),
    purpose: 'batch',
  });
  const startedAtMs = performance.now();
  const { id } = await stack.client.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  const batch = await untilTerminal(stack.client, id, timeoutMs);
  const tookMs = performance.now() - startedAtMs;
  expect(batch).toMatchObject({
    status: 'completed',
    request_counts: { total: count, completed: count, failed: 0 },
    usage: { total_tokens: 2 * count },
  });
  expect(lengths).toHaveLength(count);
  await expectInOrder(batch.output_file_id ?? '', count);
  const toFirstRequestMs = firstRequestAtMs - startedAtMs;
  return { fileId: file.id, toFirstRequestMs, tookMs, peakMib: workerPeakMib() };
}

function* blocks(count: number, bytes: number): Generator<Buffer> {
  for (let from = 0; from < count; from += 1_000) {
    const few = Math.min(1_000, count - from);
    const text = Array.from({ length: few }, (_, i) => `${lineOf(bytes - 1, `c-${from + i}`)}\n`);
    yield Buffer.from(text.join(''));
  }
}

async function expectInOrder(fileId: string, count: number): Promise<void> {
  const { body } = await stack.client.files.content(fileId);
  let next = 0;
  let rest = '';
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + Buffer.from(chunk).toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.includes(`"custom_id":"c-${next}"`)) throw new Error(`line ${next}: ${line}`);
      next++;
    }
  }
  expect([next, rest]).toEqual([count, '']);
}

describe('an input file', () => {
  it('may have lines of 16 MiB', async () => {
    const text = [lineOf(MAX_LINE, 'largest'), lineOf(300, 'small')].join('\r\n');
    const created = await createBatch(stack.client, text, CHAT);
    const { batch, output } = await outcomeOf(stack.client, created.id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 2 } });
    expect(output.map((line) => line.custom_id)).toEqual(['largest', 'small']);
    const around = lineOf(MAX_LINE, 'largest').indexOf('{"model"') + 1;
    expect(Math.max(...lengths)).toBe(MAX_LINE - around);
  }, 60_000);

  it('fails if a line is one byte longer', async () => {
    const text = [lineOf(300, 'small'), lineOf(MAX_LINE + 1, 'beyond')].join('\n');
    const created = await createBatch(stack.client, text, CHAT);
    const ended = await untilTerminal(stack.client, created.id);
    expect(ended.status).toBe('failed');
    expect(ended.errors?.data).toMatchObject([{ code: 'line_too_long', line: 2 }]);
    expect(lengths).toEqual([]);
  }, 60_000);

  it('of 10,000 lines runs in bounded memory, from the index that its upload has left', async () => {
    const run = await runLines(10_000, 4_000, 120_000);
    expect(run.peakMib).toBeLessThan(600);
    const key = fileIndexKey(fileKey(tenantHash('default'), run.fileId));
    expect(hasObject(stack, key)).toBe(true);
  }, 180_000);
});

(isLarge ? describe : describe.skip)('the largest input file', () => {
  it('of 50,000 lines of 4 KB runs in bounded memory', async () => {
    const beforeMib = workerPeakMib();
    const run = await runLines(50_000, 4_000, 600_000);
    process.stderr.write(`50,000 lines: ${JSON.stringify({ beforeMib, ...run })}\n`);
    expect(run.peakMib).toBeLessThan(600);
  }, 900_000);

  it('of a million short lines runs in bounded memory, if the limits allow it', async () => {
    const beforeMib = workerPeakMib();
    const run = await runLines(1_000_000, 190, 1_500_000);
    process.stderr.write(`a million lines: ${JSON.stringify({ beforeMib, ...run })}\n`);
    expect(run.peakMib).toBeLessThan(600);
  }, 1_800_000);
});
