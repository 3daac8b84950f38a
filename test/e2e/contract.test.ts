import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  NotFoundError,
  toFile,
} from 'openai';
import { packageRoot } from '../../platform/package-root';
import { type LocalServer, startLocalServer } from '../inference/local-server';
import { findPython, runPythonContract } from '../support/python-client';
import {
  type ResultLine,
  resultLines,
  STACK_START_MS,
  startStack,
  type TestStack,
  untilTerminal,
} from '../support/stack';
import { until } from '../support/until';

/** The calls E1 to E25 of the contract (§5), with both official clients, against one whole stack. */

let server: LocalServer;
let stack: TestStack;
let client: OpenAI;
let folder: string;
/** Every answer that a client got. */
const exchanges: { status: number }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-contract-'));
  server = await startLocalServer(({ body }, response) => {
    const request = JSON.parse(body.toString()) as { delay_ms?: number; fail?: boolean };
    const answer = request.fail === true ? { error: { message: 'no' } } : ANSWER;
    setTimeout(() => {
      response.writeHead(request.fail === true ? 400 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    }, request.delay_ms ?? 0);
  });
  stack = await startStack({
    config: {
      global_inference_gateway: { url: server.url, request_timeout: '30s', max_retries: 0 },
      auth: { mode: 'api_key' },
      batch: { cancel_grace: '200ms' },
      limits: { tenant: { max_batches: 5 } },
      concurrency: { global: 64, per_model: 20 },
      pass_through_headers: ['X-Team'],
    },
  });
  client = clientOf('contract');
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);
beforeEach(() => void (exchanges.length = 0));

const ANSWER = {
  id: 'x',
  model: 'm',
  choices: [],
  usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
};

/** A key of a tenant, made as an operator makes it. */
function keyOf(tenant: string): string {
  const cli = join(packageRoot(), 'cli', 'nightshift.js');
  const args = [cli, 'keys', 'create', '--tenant', tenant, '--data-dir', stack.dataDir];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (!stdout.startsWith('nsk_')) throw new Error(`no key was made: ${stderr}`);
  return stdout.trim();
}

function clientOf(tenant: string, apiKey = keyOf(tenant)): OpenAI {
  return new OpenAI({
    baseURL: stack.baseUrl,
    apiKey,
    fetch: async (url, init) => {
      const answer = await fetch(url, init);
      exchanges.push({ status: answer.status });
      return answer;
    },
  });
}

interface Line {
  readonly delay_ms?: number;
  readonly fail?: boolean;
  readonly tag?: string;
}

const CHAT = '/v1/chat/completions';

function text(lines: readonly Line[]): string {
  return lines
    .map((line, i) => {
      const body = { model: 'm', messages: [], ...line };
      return `${JSON.stringify({ custom_id: `c-${i}`, method: 'POST', url: CHAT, body })}\n`;
    })
    .join('');
}

const uploaded = async (content: string, name = 'in.jsonl', by = client) =>
  by.files.create({ file: await toFile(Buffer.from(content), name), purpose: 'batch' });

async function created(content: string, window = '24h', by = client) {
  return by.batches.create({
    input_file_id: (await uploaded(content, 'in.jsonl', by)).id,
    endpoint: CHAT,
    completion_window: window as '24h',
  });
}

const many = (count: number, line: Line) => text(Array.from({ length: count }, () => line));
const rejection = (call: Promise<unknown>) => call.catch((reason: unknown) => reason);
const customIds = (lines: readonly ResultLine[]) => lines.map((line) => line.custom_id);

describe('files', () => {
  it('E1 takes a stream', async () => {
    const file = join(folder, 'stream.jsonl');
    const content = text([{}, {}]);
    writeFileSync(file, content);
    const made = await client.files.create({ file: createReadStream(file), purpose: 'batch' });
    expect(made).toMatchObject({
      id: expect.stringMatching(/^file-/),
      bytes: content.length,
      status: 'processed',
      filename: 'stream.jsonl',
    });
    expect((made.expires_at ?? 0) - made.created_at).toBe(2_592_000);
  });

  it('E2 takes buffers and web files, with names of any letters', async () => {
    const names = ['größe "x".jsonl', '日本.jsonl'];
    for (const name of names) {
      expect((await uploaded(text([{}]), name)).filename).toBe(name);
      const file = new File([text([{}])], name);
      expect((await client.files.create({ file, purpose: 'batch' })).filename).toBe(name);
    }
  });

  it('E3 lets a file expire', async () => {
    const made = await client.files.create({
      file: new File([text([{}])], 'a.jsonl'),
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 3_600 },
    });
    expect((made.expires_at ?? 0) - made.created_at).toBe(3_600);
  });

  it('E4, E5 shows it again, processed at once', async () => {
    const made = await uploaded(text([{}]));
    expect(await client.files.retrieve(made.id)).toEqual(made);
    exchanges.length = 0;
    expect(await client.files.waitForProcessing(made.id)).toEqual(made);
    expect(exchanges).toHaveLength(1);
  });

  it('E6 pages through all of them once, newest first or last', async () => {
    const pager = clientOf('pager');
    const ids = [];
    for (let i = 0; i < 5; i++) ids.push((await uploaded(text([{}]), `${i}.jsonl`, pager)).id);
    const seen = { desc: [] as string[], asc: [] as string[] };
    for (const order of ['desc', 'asc'] as const) {
      for await (const { id } of pager.files.list({ purpose: 'batch', limit: 2, order })) {
        seen[order].push(id);
      }
    }
    expect(seen.asc).toEqual(ids);
    expect(seen.desc).toEqual([...ids].reverse());
  });

  it('E7 gives back the bytes', async () => {
    const content = text([{}, { delay_ms: 1 }]);
    const answer = await client.files.content((await uploaded(content)).id);
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(await answer.text()).toBe(content);
  });

  it('E8 deletes a file for good', async () => {
    const { id } = await uploaded(text([{}]));
    expect(await client.files.delete(id)).toMatchObject({ id, deleted: true });
    for (const call of [
      () => client.files.retrieve(id),
      () => client.files.content(id),
      () => client.files.delete(id),
    ]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(NotFoundError);
      expect(error).toMatchObject({ param: 'id' });
    }
  });
});

describe('uploads', () => {
  it('E9 joins parts that came side by side, in the order of their ids', async () => {
    const content = text([{}, {}, {}]);
    const upload = await client.uploads.create({
      filename: 'parts.jsonl',
      purpose: 'batch',
      bytes: content.length,
      mime_type: 'application/jsonl',
    });
    const pieces = [content.slice(0, 50), content.slice(50, 100), content.slice(100)];
    const parts = await Promise.all(
      pieces.map(async (piece) =>
        client.uploads.parts.create(upload.id, { data: await toFile(Buffer.from(piece), 'p') }),
      ),
    );
    const done = await client.uploads.complete(upload.id, {
      part_ids: parts.map(({ id }) => id),
      md5: createHash('md5').update(content).digest('hex'),
    });
    expect(done).toMatchObject({ status: 'completed', file: { bytes: content.length } });
    expect(await (await client.files.content(done.file?.id ?? '')).text()).toBe(content);
  });

  it('E10 cancels', async () => {
    const upload = await client.uploads.create({
      ...{ filename: 'a.jsonl', purpose: 'batch', bytes: 10, mime_type: 'text/jsonl' },
    });
    expect((await client.uploads.cancel(upload.id)).status).toBe('cancelled');
    const data = await toFile(Buffer.from('x'), 'p');
    const error = await rejection(client.uploads.parts.create(upload.id, { data }));
    expect(error).toBeInstanceOf(BadRequestError);
  });
});

describe('batches', () => {
  it('E12, E13 are created with every key, whatever is left out or null', async () => {
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
    expect(full.metadata).toEqual({ team: 'blue' });
    expect([plain.metadata, none.metadata]).toEqual([null, null]);
    const done = await untilTerminal(client, full.id);
    const output = await client.files.retrieve(done.output_file_id ?? '');
    expect((output.expires_at ?? 0) - output.created_at).toBe(3_600);
    await Promise.all([plain, none].map(({ id }) => untilTerminal(client, id)));
  });

  it('E14, E15 run to their end, step by step', async () => {
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

  it('E16, E17 tell which requests failed', async () => {
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

  it('E18, E19 are cancelled while they run, and not when they have ended', async () => {
    const { id } = await created(many(200, { delay_ms: 400 }));
    await until(
      async () => ((await client.batches.retrieve(id)).request_counts?.completed ?? 0) > 0,
      30_000,
      'a first answer',
    );
    expect((await client.batches.cancel(id)).status).toBe('cancelling');
    expect(['cancelling', 'cancelled']).toContain((await client.batches.cancel(id)).status);
    const done = await untilTerminal(client, id);
    expect(done).toMatchObject({ status: 'cancelled', request_counts: { total: 200, failed: 0 } });
    const [output, errors] = await Promise.all(
      [done.output_file_id, done.error_file_id].map((file) => resultLines(client, file)),
    );
    expect(output).toHaveLength(done.request_counts?.completed ?? -1);
    expect(new Set(errors?.map((line) => line.error?.code))).toEqual(new Set(['batch_cancelled']));
    expect((output?.length ?? 0) + (errors?.length ?? 0)).toBe(200);

    const ended = await untilTerminal(client, (await created(text([{}]))).id);
    exchanges.length = 0;
    expect(await rejection(client.batches.cancel(ended.id))).toBeInstanceOf(ConflictError);
    expect(exchanges).toHaveLength(1);
  });

  it('E20 are listed page by page', async () => {
    const ids: string[] = [];
    for await (const { id } of client.batches.list({ limit: 2 })) ids.push(id);
    expect(ids.length).toBeGreaterThan(4);
    expect(new Set(ids).size).toBe(ids.length);
    expect(await client.batches.list({ limit: 0 })).toMatchObject({ data: [], has_more: false });
    for (const limit of [101, -1]) {
      expect(await rejection(client.batches.list({ limit }))).toBeInstanceOf(BadRequestError);
    }
  });

  const line = (changes: Record<string, unknown>) =>
    JSON.stringify({
      ...{ custom_id: 'a', method: 'POST', url: CHAT, body: { model: 'm', messages: [] } },
      ...changes,
    });
  it.each<[string, string[], [string, string | null, number | null][]]>([
    ['a line that is no JSON', [line({}), '{oops'], [['invalid_json_line', null, 2]]],
    ['a line that is no object', [line({}), '[]'], [['invalid_request', null, 2]]],
    [
      'members that are missing',
      [line({ custom_id: undefined }), line({ body: undefined })],
      [
        ['missing_required_parameter', 'custom_id', 1],
        ['missing_required_parameter', 'body', 2],
      ],
    ],
    ['an id used twice', [line({}), line({})], [['duplicate_custom_id', 'custom_id', 2]]],
    ['an id that is none', [line({ custom_id: 7 })], [['invalid_request', 'custom_id', 1]]],
    ['another url', [line({ url: '/v1/embeddings' })], [['invalid_url', 'url', 1]]],
    ['another method', [line({ method: 'GET' })], [['invalid_method', 'method', 1]]],
    ['a body that is none', [line({ body: 'x' })], [['invalid_request', 'body', 1]]],
    ['no model', [line({ body: { messages: [] } })], [['invalid_request', 'body.model', 1]]],
    [
      'no messages',
      [line({ body: { model: 'm' } })],
      [['missing_required_parameter', 'body.messages', 1]],
    ],
    [
      'a stream',
      [line({ body: { model: 'm', messages: [], stream: true } })],
      [['streaming_unsupported', 'body.stream', 1]],
    ],
  ])('E21 fail for %s', async (_what, lines, expected) => {
    const done = await untilTerminal(client, (await created(lines.join('\n'))).id);
    expect(done).toMatchObject({ status: 'failed', output_file_id: null, error_file_id: null });
    const told = done.errors?.data?.map(({ code, param, line: at }) => [code, param, at]);
    expect(told).toEqual(expected);
  });

  it('E21 fail for a file that is not there', async () => {
    const batch = await client.batches.create({
      ...{ input_file_id: 'file-none', endpoint: CHAT, completion_window: '24h' },
    });
    const done = await untilTerminal(client, batch.id);
    expect(done.errors?.data).toMatchObject([
      { code: 'invalid_request', param: 'file_id', line: null },
    ]);
  });

  it('E22 expire with what they have', async () => {
    const done = await untilTerminal(
      client,
      (await created(many(80, { delay_ms: 1_000 }), '3s')).id,
    );
    expect(done.status).toBe('expired');
    const output = await resultLines(client, done.output_file_id);
    const errors = await resultLines(client, done.error_file_id);
    expect(output.length).toBeGreaterThan(0);
    expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_expired']));
    expect(output.length + errors.length).toBe(80);
  });
});

describe('answers', () => {
  it('E23 raise the errors of the SDK, with an id', async () => {
    const { id } = await uploaded(text([{}]));
    const stranger = clientOf('stranger');
    const expectations: [() => Promise<unknown>, new (...args: never[]) => Error, object][] = [
      [() => clientOf('', 'sk-bad').files.list(), AuthenticationError, { code: 'invalid_api_key' }],
      [
        () => client.files.list({}, { headers: { Authorization: null } }),
        AuthenticationError,
        { code: null },
      ],
      [() => client.batches.retrieve('batch_none'), NotFoundError, { param: null }],
      [() => client.batches.retrieve('none'), BadRequestError, { param: 'batch_id' }],
      [() => stranger.files.retrieve(id), NotFoundError, { param: 'id' }],
      [() => client.get('/nothing'), NotFoundError, { type: 'invalid_request_error' }],
      [() => client.put('/files'), APIError, { status: 405 }],
    ];
    for (const [call, type, members] of expectations) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(type);
      expect(error).toMatchObject({ ...members, requestID: expect.stringMatching(/./) });
    }
  });

  it('E24 say when to try again, and the SDK does', async () => {
    const busy = clientOf('busy');
    const content = many(4, { delay_ms: 1_500 });
    for (let i = 0; i < 5; i++) await created(content, '24h', busy);
    const file = await uploaded(content, 'in.jsonl', busy);
    exchanges.length = 0;
    const batch = await busy.batches.create({
      ...{ input_file_id: file.id, endpoint: CHAT, completion_window: '24h' },
    });
    expect(exchanges.map(({ status }) => status)).toEqual([429, 200]);
    expect(batch.status).toBe('validating');
  }, 60_000);

  it('E25 come with their headers', async () => {
    const { data, response, request_id } = await client.files.list({ limit: 1 }).withResponse();
    expect(request_id).toBe(response.headers.get('x-request-id'));
    expect(request_id).toBeTruthy();
    expect(data.data.length).toBe(1);
    expect(response.headers.get('openai-organization')).toBe('contract');
    const file = await uploaded(text([{}]));
    expect((file as { _request_id?: string })._request_id).toBeTruthy();
  });
});

it('sends headers of the create call with each request, and none to others', async () => {
  const { id } = await uploaded(text([{ tag: 'team' }, { tag: 'team' }]));
  const create = (headers: Record<string, string>) =>
    client.batches.create(
      { input_file_id: id, endpoint: CHAT, completion_window: '24h' },
      { headers },
    );
  await untilTerminal(client, (await create({ 'X-Team': 'blue', 'X-Other': 'no' })).id);
  await untilTerminal(client, (await create({})).id);
  const ours = server.received.filter(({ body }) => body.includes('"tag":"team"'));
  const teams = ours.map(({ headers }) => headers['x-team']);
  expect(teams).toEqual(['blue', 'blue', undefined, undefined]);
  expect(ours.some(({ headers }) => 'x-other' in headers)).toBe(false);
  expect(server.received.some(({ headers }) => 'authorization' in headers)).toBe(false);
});

it('makes one batch of a request that is sent twice', async () => {
  const { id } = await uploaded(text([{}]));
  const create = () =>
    client.batches.create(
      { input_file_id: id, endpoint: CHAT, completion_window: '24h' },
      { idempotencyKey: 'once', headers: { 'Idempotency-Key': 'once' } },
    );
  const [one, two] = await Promise.all([create(), create()]);
  expect(two.id).toBe(one.id);
});

const python = findPython();
(python === null ? describe.skip : describe)('the official Python client', () => {
  it('passes the same calls', async () => {
    const apiKey = keyOf('python');
    const verdicts = await runPythonContract(python ?? '', { baseUrl: stack.baseUrl, apiKey });
    expect(verdicts.filter(({ ok }) => !ok)).toEqual([]);
    expect(verdicts.length).toBeGreaterThanOrEqual(20);
  }, 180_000);
});
