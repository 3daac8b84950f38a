import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordingBackend } from '../support/recording-backend';
import { sentAfter, startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import {
  chatLines,
  resultLines,
  STACK_START_MS,
  startStack,
  submit,
  untilTerminal,
} from '../support/stack';
import { until } from '../support/until';

let backend: RecordingBackend;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend(5);
  stack = await startStack({
    config: {
      global_inference_gateway: {
        url: backend.url,
        request_timeout: '30s',
        max_retries: 2,
        initial_backoff: '10ms',
        max_backoff: '100ms',
      },
      // Longer than any answer takes here, so that requests in flight at a cancel are answered.
      batch: { cancel_grace: '5s' },
      concurrency: { global: 100, per_model: 50 },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);
beforeEach(() => {
  backend.seen.length = 0;
  backend.latencyMs = 5;
  backend.judge = () => null;
  backend.hold = () => false;
});

const GSM8K = [process.env['NIGHTSHIFT_TEST_DATA'], join(__dirname, '../../../shared/data')]
  .filter((folder) => folder !== undefined)
  .map((folder) => join(folder, 'gsm8k', 'test.jsonl'))
  .find((file) => existsSync(file));

describe('a batch, with the official client', () => {
  it('returns results in input order, and the server gets the exact bytes of each body once', async () => {
    const odd =
      '{"custom_id":"odd","method":"POST","url":"/v1/chat/completions","body": {"model":"m",  "n":9007199254740993,"x":1.0,"messages":[]} }\r\n';
    const text = chatLines(300) + odd;
    const batch = await submit(stack.client, text);
    expect(batch).toMatchObject({
      status: 'validating',
      request_counts: { total: 0, completed: 0, failed: 0 },
    });
    const done = await untilTerminal(stack.client, batch.id);
    expect(done).toMatchObject({
      status: 'completed',
      request_counts: { total: 301, completed: 301, failed: 0 },
      error_file_id: null,
      model: 'm',
      usage: { input_tokens: 7 * 301, output_tokens: 3 * 301, total_tokens: 10 * 301 },
    });
    const results = await resultLines(stack.client, done.output_file_id);
    expect(results.map((line) => line.custom_id)).toEqual([
      ...Array.from({ length: 300 }, (_, i) => `c-${i}`),
      'odd',
    ]);
    expect(new Set(backend.seen.map((seen) => seen.requestId)).size).toBe(301);
    expect(backend.seen).toHaveLength(301);
    expect(backend.seen.map((seen) => seen.body)).toContain(
      '{"model":"m",  "n":9007199254740993,"x":1.0,"messages":[]}',
    );
  }, 60_000);

  it('of one line completes within seconds', async () => {
    const batch = await submit(stack.client, chatLines(1));
    const done = await untilTerminal(stack.client, batch.id);
    expect(done).toMatchObject({ status: 'completed', request_counts: { total: 1, completed: 1 } });
  });

  it('puts failed requests into the error file and the others into the output file', async () => {
    backend.judge = ({ body }) =>
      body.includes('question 3') ? { status: 400, body: '{"error":{"message":"bad"}}' } : null;
    const batch = await submit(stack.client, chatLines(6));
    const done = await untilTerminal(stack.client, batch.id);
    expect(done.request_counts).toEqual({ total: 6, completed: 5, failed: 1 });
    const errors = await resultLines(stack.client, done.error_file_id);
    expect(errors).toMatchObject([
      {
        custom_id: 'c-3',
        response: { status_code: 400, body: { error: { message: 'bad' } } },
        error: null,
      },
    ]);
    expect(await resultLines(stack.client, done.output_file_id)).toHaveLength(5);
  });

  it('with an invalid file fails with every error named, and sends nothing', async () => {
    const bad = `${chatLines(2)}{"custom_id":"c-0","method":"GET","url":"/v1/chat/completions","body":{"model":"m","messages":[]}}\n`;
    const batch = await submit(stack.client, bad);
    const done = await untilTerminal(stack.client, batch.id);
    expect(done.status).toBe('failed');
    expect(done.errors?.data?.map(({ code, line, param }) => ({ code, line, param }))).toEqual([
      { code: 'invalid_method', line: 3, param: 'method' },
      { code: 'duplicate_custom_id', line: 3, param: 'custom_id' },
    ]);
    expect(done).toMatchObject({
      output_file_id: null,
      error_file_id: null,
      request_counts: { total: 0 },
    });
    expect(backend.seen).toEqual([]);
  });

  it('keeps its answers when it is cancelled twice', async () => {
    backend.latencyMs = 200;
    const batch = await submit(stack.client, chatLines(1_500));
    await until(() => backend.seen.length >= 100, 30_000, 'a hundred requests');
    const [one, two] = await Promise.all([
      stack.client.batches.cancel(batch.id),
      stack.client.batches.cancel(batch.id),
    ]);
    // The later of the two may come after the end.
    expect([one.status, two.status]).toContain('cancelling');
    for (const { status } of [one, two]) expect(['cancelling', 'cancelled']).toContain(status);
    const done = await untilTerminal(stack.client, batch.id);
    expect(done).toMatchObject({
      status: 'cancelled',
      request_counts: { total: 1_500, failed: 0 },
    });
    const output = await resultLines(stack.client, done.output_file_id);
    const errors = await resultLines(stack.client, done.error_file_id);
    expect(output).toHaveLength(done.request_counts?.completed ?? -1);
    expect(output.length).toBeGreaterThanOrEqual(100);
    expect(errors.every((line) => line.error?.code === 'batch_cancelled')).toBe(true);
    expect(new Set([...output, ...errors].map((line) => line.custom_id)).size).toBe(1_500);
    expect(output.length + errors.length).toBe(1_500);
  }, 60_000);

  it('expires with the answers it has when its window ends', async () => {
    backend.latencyMs = 300;
    const batch = await submit(stack.client, chatLines(600), '2s');
    const done = await untilTerminal(stack.client, batch.id);
    expect(done.status).toBe('expired');
    const errors = await resultLines(stack.client, done.error_file_id);
    expect(errors.every((line) => line.error?.code === 'batch_expired')).toBe(true);
    expect(errors.length + (done.request_counts?.completed ?? 0)).toBe(600);
    const deadlineMs = (done.expires_at ?? 0) * 1000;
    expect(sentAfter(deadlineMs, backend.seen)).toEqual([]);
  }, 60_000);

  it('runs several models side by side, so that a slow one does not delay a fast one', async () => {
    const of = (model: string) => backend.seen.filter(({ body }) => body.includes(`"${model}"`));
    // It answers nothing before the fast model has received all its lines.
    backend.hold = ({ body }) => body.includes('"slow"') && of('fast').length < 400;
    const text = chatLines(560, (i) => (i < 160 ? 'slow' : 'fast'));
    const batch = await submit(stack.client, text);
    const done = await untilTerminal(stack.client, batch.id);
    expect(done).toMatchObject({
      status: 'completed',
      model: null,
      request_counts: { total: 560, completed: 560, failed: 0 },
    });
    // None was held for longer than a request may take.
    expect(backend.seen).toHaveLength(560);
  }, 60_000);

  (GSM8K === undefined ? it.skip : it)(
    'answers the 1,319 questions of GSM8K in input order',
    async () => {
      const questions = readFileSync(GSM8K ?? '', 'utf8')
        .trim()
        .split('\n');
      const text = questions
        .map((line, i) => {
          const { question } = JSON.parse(line) as { question: string };
          const body = { model: 'm', messages: [{ role: 'user', content: question }] };
          return JSON.stringify({
            custom_id: `gsm8k-${i}`,
            method: 'POST',
            url: '/v1/chat/completions',
            body,
          });
        })
        .join('\n');
      const batch = await submit(stack.client, text);
      const done = await untilTerminal(stack.client, batch.id);
      expect(done.request_counts).toEqual({ total: 1319, completed: 1319, failed: 0 });
      const results = await resultLines(stack.client, done.output_file_id);
      expect(results.map((line) => line.custom_id)).toEqual(questions.map((_, i) => `gsm8k-${i}`));
      expect(backend.seen).toHaveLength(1319);
    },
    60_000,
  );
});
