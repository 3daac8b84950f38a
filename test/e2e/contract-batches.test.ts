import type OpenAI from 'openai';
import { BadRequestError, ConflictError } from 'openai';
import { expectBatchShape, type WireBatch } from './batch-shape';
import {
  ANSWER,
  CHAT,
  type ContractStack,
  createBy,
  line,
  many,
  startContractStack,
  rejection,
  text,
  uploadBy,
} from './contract-stack';
import { type ResultLine, resultLines, STACK_START_MS, untilTerminal } from '../support/stack';
import { until } from '../support/until';

/** Batches (docs/design/api-contract.md#batches) as the official Node client creates, polls, lists and cancels them. */

let stack: ContractStack;
let client: OpenAI;

beforeAll(async () => {
  stack = await startContractStack();
  client = stack.clientOf('contract');
}, STACK_START_MS);
afterAll(() => stack?.close(), 60_000);
beforeEach(() => void (stack.exchanges.length = 0));

const uploaded = (content: string, name?: string, by = client) => uploadBy(by, content, name);
const created = (content: string, window?: string, by = client) => createBy(by, content, window);
const customIds = (lines: readonly ResultLine[]) => lines.map(({ custom_id: id }) => id);

describe('batches, with the official client', () => {
  it('are created with every key, also if members are missing or null', async () => {
    const file = await uploaded(text([{}]));
    const minimal = { input_file_id: file.id, endpoint: CHAT, completion_window: '24h' } as const;
    const [plain, full, none] = await Promise.all([
      client.batches.create(minimal),
      client.batches.create({
        ...minimal,
        metadata: { team: 'blue' },
        output_expires_after: { anchor: 'created_at', seconds: 3_600 },
      }),
      client.batches.create({ ...minimal, metadata: null }),
    ]);
    expect(plain).toMatchObject({
      id: expect.stringMatching(/^batch_[0-9a-f]{32}$/),
      status: 'validating',
      expires_at: plain.created_at + 86_400,
      model: null,
      errors: null,
      output_file_id: null,
      error_file_id: null,
      in_progress_at: null,
      request_counts: { total: 0, completed: 0, failed: 0 },
      usage: { total_tokens: 0, input_tokens_details: { cached_tokens: 0 } },
    });
    for (const batch of [plain, full, none]) {
      expectBatchShape(JSON.parse(JSON.stringify(batch)) as WireBatch);
    }
    expect(full.metadata).toEqual({ team: 'blue' });
    expect([plain.metadata, none.metadata]).toEqual([null, null]);
    const done = await untilTerminal(client, full.id);
    const output = await client.files.retrieve(done.output_file_id ?? '');
    expect((output.expires_at ?? 0) - output.created_at).toBe(3_600);
    await Promise.all([plain, none].map(({ id }) => untilTerminal(client, id)));
  });

  it('go through their statuses in order, with counts that only grow', async () => {
    const { id } = await created(many(20, { delay_ms: 100 }));
    const seen: OpenAI.Batch[] = [];
    await until(
      async () => {
        seen.push(await client.batches.retrieve(id));
        return seen.at(-1)?.status === 'completed';
      },
      60_000,
      'the end',
      20,
    );
    const order = ['validating', 'in_progress', 'finalizing', 'completed'];
    const steps = seen.map(({ status }) => order.indexOf(status));
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
    const counts = seen.map(({ request_counts: one }) => one?.completed ?? 0);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    const done = seen.at(-1);
    const times = [done?.created_at, done?.in_progress_at, done?.finalizing_at, done?.completed_at];
    expect(times).toEqual([...times].sort((a, b) => Number(a) - Number(b)));
    expect(done).toMatchObject({
      request_counts: { total: 20, completed: 20, failed: 0 },
      error_file_id: null,
      model: 'm',
      usage: { input_tokens: 40, output_tokens: 20, total_tokens: 60 },
    });
    const output = await resultLines(client, done?.output_file_id);
    expect(customIds(output)).toEqual(Array.from({ length: 20 }, (_, i) => `c-${i}`));
    expect(output[0]?.response).toMatchObject({ status_code: 200, body: ANSWER });
  });

  it.each([
    [CHAT, { messages: [] }],
    ['/v1/completions', { prompt: 'x' }],
    ['/v1/embeddings', { input: ['a', 'b'] }],
    ['/v1/responses', { input: 'x' }],
    ['/v1/moderations', { input: 'x' }],
  ])('complete at %s', async (url, members) => {
    const body = { model: 'm', ...members };
    const lines = ['a', 'b', 'c'].map((id) => line({ custom_id: id, url, body }));
    const file = await uploaded(lines.join('\n'));
    const batch = await client.batches.create({
      ...{ input_file_id: file.id, endpoint: url as typeof CHAT, completion_window: '24h' },
    });
    const done = await untilTerminal(client, batch.id);
    expect(done).toMatchObject({
      ...{ status: 'completed', endpoint: url, error_file_id: null },
      request_counts: { total: 3, completed: 3, failed: 0 },
    });
    const output = await resultLines(client, done.output_file_id);
    expect(new Set(customIds(output))).toEqual(new Set(['a', 'b', 'c']));
    for (const { response } of output) expect(response).toMatchObject({ body: ANSWER });
  });

  it('name failed requests in the error file', async () => {
    const some = await created(text([{}, { fail: true }, {}]));
    const all = await created(text([{ fail: true }]));
    const done = await untilTerminal(client, some.id);
    expect(done.request_counts).toEqual({ total: 3, completed: 2, failed: 1 });
    const [line] = await resultLines(client, done.error_file_id);
    expect(line).toMatchObject({ custom_id: 'c-1', error: null, response: { status_code: 400 } });
    const failed = await untilTerminal(client, all.id);
    expect(failed).toMatchObject({ status: 'completed', output_file_id: null });
    expect(await resultLines(client, failed.error_file_id)).toHaveLength(1);
  });

  it('can be cancelled while they run, but not after their end', async () => {
    const { id } = await created(many(400, { delay_ms: 400 }));
    await until(
      async () => ((await client.batches.retrieve(id)).request_counts?.completed ?? 0) > 0,
      30_000,
      'a first answer',
    );
    expect((await client.batches.cancel(id)).status).toBe('cancelling');
    expect(['cancelling', 'cancelled']).toContain((await client.batches.cancel(id)).status);
    const done = await untilTerminal(client, id);
    expect(done).toMatchObject({ status: 'cancelled', request_counts: { total: 400, failed: 0 } });
    const [output, errors] = await Promise.all(
      [done.output_file_id, done.error_file_id].map((file) => resultLines(client, file)),
    );
    expect(output).toHaveLength(done.request_counts?.completed ?? -1);
    expect(new Set(errors?.map((line) => line.error?.code))).toEqual(new Set(['batch_cancelled']));
    expect((output?.length ?? 0) + (errors?.length ?? 0)).toBe(400);

    const ended = await untilTerminal(client, (await created(text([{}]))).id);
    stack.exchanges.length = 0;
    expect(await rejection(client.batches.cancel(ended.id))).toBeInstanceOf(ConflictError);
    expect(stack.exchanges).toHaveLength(1);
  });

  it('are listed page by page', async () => {
    const pager = stack.clientOf('batch-pager');
    const made: string[] = [];
    for (let i = 0; i < 5; i++) made.push((await created(text([{}]), '24h', pager)).id);
    const ids: string[] = [];
    for await (const { id } of pager.batches.list({ limit: 2 })) ids.push(id);
    expect(ids).toEqual(made.toReversed());
    expect(await client.batches.list({ limit: 0 })).toMatchObject({ data: [], has_more: false });
    for (const limit of [101, -1]) {
      expect(await rejection(client.batches.list({ limit }))).toBeInstanceOf(BadRequestError);
    }
  });

  it.each<[string, string[], [string, string | null, number | null][]]>([
    ['a line that is not JSON', [line({}), '{oops'], [['invalid_json_line', null, 2]]],
    ['a line that is not an object', [line({}), '[]'], [['invalid_request', null, 2]]],
    [
      'missing members',
      [line({ custom_id: undefined }), line({ body: undefined })],
      [
        ['missing_required_parameter', 'custom_id', 1],
        ['missing_required_parameter', 'body', 2],
      ],
    ],
    ['a repeated custom_id', [line({}), line({})], [['duplicate_custom_id', 'custom_id', 2]]],
    [
      'a custom_id that is not a string',
      [line({ custom_id: 7 })],
      [['invalid_request', 'custom_id', 1]],
    ],
    [
      'another url than the endpoint',
      [line({ url: '/v1/embeddings' })],
      [['invalid_url', 'url', 1]],
    ],
    ['another method than POST', [line({ method: 'GET' })], [['invalid_method', 'method', 1]]],
    ['a body that is not an object', [line({ body: 'x' })], [['invalid_request', 'body', 1]]],
    ['a missing model', [line({ body: { messages: [] } })], [['invalid_request', 'body.model', 1]]],
    [
      'missing messages',
      [line({ body: { model: 'm' } })],
      [['missing_required_parameter', 'body.messages', 1]],
    ],
    [
      'a streamed request',
      [line({ body: { model: 'm', messages: [], stream: true } })],
      [['streaming_unsupported', 'body.stream', 1]],
    ],
  ])('fail for an input file with %s', async (_what, lines, expected) => {
    const done = await untilTerminal(client, (await created(lines.join('\n'))).id);
    expect(done).toMatchObject({ status: 'failed', output_file_id: null, error_file_id: null });
    const told = done.errors?.data?.map(({ code, param, line: at }) => [code, param, at]);
    expect(told).toEqual(expected);
  });

  it('fail for an input file that does not exist', async () => {
    const batch = await client.batches.create({
      ...{ input_file_id: 'file-none', endpoint: CHAT, completion_window: '24h' },
    });
    const done = await untilTerminal(client, batch.id);
    expect(done.errors?.data).toMatchObject([
      { code: 'invalid_request', param: 'file_id', line: null },
    ]);
  });

  it('expire with the answers they have', async () => {
    // Every second request is answered at once. The others keep the batch open until its window ends.
    const lines = Array.from({ length: 80 }, (_, i) => (i % 2 === 0 ? { delay_ms: 25_000 } : {}));
    const ended = async (windowSec: number): Promise<OpenAI.Batch> => {
      const batch = await untilTerminal(client, (await created(text(lines), `${windowSec}s`)).id);
      // A busy machine may need longer until the first answer.
      return batch.output_file_id === null ? ended(2 * windowSec) : batch;
    };
    const done = await ended(4);
    expect(done).toMatchObject({ status: 'expired', request_counts: { total: 80, failed: 0 } });
    expect((done.expired_at ?? 0) - (done.expires_at ?? 0)).toBeGreaterThanOrEqual(0);
    const output = await resultLines(client, done.output_file_id);
    const errors = await resultLines(client, done.error_file_id);
    expect(output).toHaveLength(done.request_counts?.completed ?? -1);
    expect(output.length).toBeGreaterThan(0);
    expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_expired']));
    expect(output.length + errors.length).toBe(80);
  });
});
it('sends pass-through headers of the create call with every request of that batch only', async () => {
  const { id } = await uploaded(text([{ tag: 'team' }, { tag: 'team' }]));
  const create = (headers: Record<string, string>) =>
    client.batches.create(
      { input_file_id: id, endpoint: CHAT, completion_window: '24h' },
      { headers },
    );
  await untilTerminal(client, (await create({ 'X-Team': 'blue', 'X-Other': 'no' })).id);
  await untilTerminal(client, (await create({})).id);
  const ours = stack.server.received.filter(({ body }) => body.includes('"tag":"team"'));
  const teams = ours.map(({ headers }) => headers['x-team']);
  expect(teams).toEqual(['blue', 'blue', undefined, undefined]);
  expect(ours.some(({ headers }) => 'x-other' in headers)).toBe(false);
  expect(stack.server.received.some(({ headers }) => 'authorization' in headers)).toBe(false);
});

it('creates one batch for two requests with the same idempotency key', async () => {
  const { id } = await uploaded(text([{}]));
  const create = () =>
    client.batches.create(
      { input_file_id: id, endpoint: CHAT, completion_window: '24h' },
      { idempotencyKey: 'once', headers: { 'Idempotency-Key': 'once' } },
    );
  const [one, two] = await Promise.all([create(), create()]);
  expect(two.id).toBe(one.id);
});
