import { type LocalServer, startLocalServer } from '../inference/local-server';
import { expectBatchShape, expectLife, type WireBatch } from './batch-shape';
import { STACK_START_MS, startStack, type TestStack } from '../support/stack';
import { until } from '../support/until';

/** Batches as any HTTP client sees them, without what the official ones hide. */

const CHAT = '/v1/chat/completions';
const LIMITS = { max_requests: 120, max_inputs: 20 };
const MAX_FILE_BYTES = 256 * 1024;

let server: LocalServer;
let stack: TestStack;

/** What a request asks of the server. */
interface Asked {
  readonly delay_ms?: number;
  readonly status?: number;
  readonly answers?: unknown;
}

beforeAll(async () => {
  server = await startLocalServer(({ body }, response) => {
    const { delay_ms: delayMs = 0, status = 200, answers } = JSON.parse(body.toString()) as Asked;
    setTimeout(() => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(answers ?? { usage: { prompt_tokens: 2, completion_tokens: 1 } }),
      );
      // Long ones are for batches that are stopped: nobody waits for them.
    }, delayMs).unref();
  });
  stack = await startStack({
    config: {
      global_inference_gateway: { url: server.url, request_timeout: '30s', max_retries: 0 },
      auth: { mode: 'header' },
      batch: { cancel_grace: '200ms', single_model_batches: true },
      limits: {
        ...LIMITS,
        max_file_bytes: MAX_FILE_BYTES,
        max_line_bytes: 32 * 1024,
        tenant: { max_enqueued_requests: 110 },
      },
      concurrency: { global: 64, per_model: 10 },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await server?.close();
}, 60_000);

interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: WireBatch & { readonly error?: Readonly<Record<string, unknown>> };
}

async function send(
  method: string,
  path: string,
  options: { body?: unknown; tenant?: string } = {},
) {
  const { body, tenant = 'wire' } = options;
  const headers = { 'x-maas-username': tenant, 'content-type': 'application/json' };
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`${stack.baseUrl}${path}`, { method, headers, ...content });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: JSON.parse(text) } as WireAnswer;
}

async function upload(text: string, tenant = 'wire'): Promise<string> {
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([text]), 'in.jsonl');
  const headers = { 'x-maas-username': tenant };
  const answer = await fetch(`${stack.baseUrl}/files`, { method: 'POST', body: form, headers });
  const body = (await answer.json()) as { id: string; error?: unknown };
  if (answer.status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`);
  return body.id;
}

const get = async (id: string) => (await send('GET', `/batches/${id}`)).body;
const cancel = (id: string) => send('POST', `/batches/${id}/cancel`);

async function createOf(fileId: string, members: object = {}): Promise<WireBatch> {
  const body = { input_file_id: fileId, endpoint: CHAT, completion_window: '24h', ...members };
  const answer = await send('POST', '/batches', { body });
  expect([answer.status, answer.body.error]).toEqual([200, undefined]);
  return answer.body;
}

const create = async (text: string, members: object = {}) => createOf(await upload(text), members);

/** A line with other members; undefined leaves one out. */
function line(changes: object = {}, body: object = {}): string {
  return JSON.stringify({
    ...{ custom_id: 'a', method: 'POST', url: CHAT },
    body: { model: 'm', messages: [], ...body },
    ...changes,
  });
}

const lines = (count: number, body: object = {}) =>
  Array.from({ length: count }, (_, i) => line({ custom_id: `c-${i}` }, body)).join('\n');

/** Every different answer from now to the end. */
async function lifeOf(first: WireBatch): Promise<WireBatch[]> {
  const seen = [first];
  await until(
    async () => {
      const batch = await get(first.id);
      if (JSON.stringify(batch) !== JSON.stringify(seen.at(-1))) seen.push(batch);
      return ['completed', 'failed', 'expired', 'cancelled'].includes(String(batch['status']));
    },
    60_000,
    `the end of ${first.id}`,
    15,
  );
  return seen;
}

async function endOf(first: WireBatch): Promise<WireBatch> {
  const seen = await lifeOf(first);
  return seen[seen.length - 1] ?? first;
}

const statuses = (seen: readonly WireBatch[]) => [...new Set(seen.map(({ status }) => status))];
const isRunning = (id: string) =>
  until(async () => (await get(id))['status'] === 'in_progress', 30_000, 'the start', 10);

describe('a batch has every key, whatever becomes of it', () => {
  it('when it is completed', async () => {
    const seen = await lifeOf(await create(lines(40, { delay_ms: 100 }), { metadata: { a: 'b' } }));
    expectLife(seen);
    expect(statuses(seen)).toEqual(
      expect.arrayContaining(['validating', 'in_progress', 'completed']),
    );
    expect(seen.at(-1)).toMatchObject({
      model: 'm',
      metadata: { a: 'b' },
      request_counts: { total: 40, completed: 40, failed: 0 },
      usage: { input_tokens: 80, output_tokens: 40, total_tokens: 120 },
    });
    expect(seen[0]).toMatchObject({ model: null, usage: { total_tokens: 0 } });
  });

  it('when every request failed', async () => {
    const end = await endOf(await create(lines(3, { status: 404 })));
    expectBatchShape(end);
    expect(end).toMatchObject({ status: 'completed', output_file_id: null, model: 'm' });
    expect(end['request_counts']).toEqual({ total: 3, completed: 0, failed: 3 });
  });

  it('when its file is refused', async () => {
    const seen = await lifeOf(await create(`${line()}\n[]`));
    expectLife(seen);
    expect(statuses(seen)).toEqual(['validating', 'failed']);
    const counts = { total: 0, completed: 0, failed: 0 };
    expect(seen.at(-1)).toMatchObject({ model: null, request_counts: counts });
  });

  it('when it is cancelled while it runs', async () => {
    const batch = await create(lines(40, { delay_ms: 2_000 }));
    await isRunning(batch.id);
    const cancelling = (await cancel(batch.id)).body;
    expect(cancelling['status']).toBe('cancelling');
    const seen = await lifeOf(cancelling);
    expectLife([batch, ...seen]);
    expect(statuses(seen)).toEqual(['cancelling', 'cancelled']);
    expect(seen.at(-1)).toMatchObject({ request_counts: { total: 40, failed: 0 } });
  });

  it('when it is cancelled before anything was sent', async () => {
    const batch = await create(lines(5, { delay_ms: 25_000 }));
    const cancelling = (await cancel(batch.id)).body;
    const seen = await lifeOf(cancelling);
    expectLife([batch, ...seen]);
    expect(seen.at(-1)?.['status']).toBe('cancelled');
  });

  it('when it expires', async () => {
    const batch = await create(lines(60, { delay_ms: 1_000 }), { completion_window: '3s' });
    expect(Number(batch['expires_at']) - Number(batch['created_at'])).toBe(3);
    const seen = await lifeOf(batch);
    expectLife(seen);
    expect(seen.at(-1)).toMatchObject({
      status: 'expired',
      request_counts: { total: 60, failed: 0 },
    });
  });

  it('in a list just as alone', async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await endOf(await create(line()))).id);
    const { body } = await send('GET', '/batches?limit=3');
    const data = body['data'] as WireBatch[];
    expect(data.map(({ id }) => id)).toEqual(ids.toReversed());
    for (const batch of data) expect(batch).toEqual(await get(batch.id));
  });
});

describe('a cancel', () => {
  it.each([
    ['completed', () => create(line())],
    ['failed', () => create(`${line()}\n[]`)],
    ['expired', () => create(line({}, { delay_ms: 5_000 }), { completion_window: '1s' })],
  ])('of a batch that is %s is a conflict that nobody sends again', async (status, made) => {
    const before = await endOf(await made());
    expect(before['status']).toBe(status);
    const answer = await cancel(before.id);
    expect(answer.status).toBe(409);
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(answer.body.error).toEqual({
      message: expect.stringContaining(status),
      type: 'invalid_request_error',
      param: null,
      code: null,
    });
    expect(await get(before.id)).toEqual(before);
  });

  it('of a cancelled batch changes nothing', async () => {
    const batch = await create(lines(5, { delay_ms: 25_000 }));
    await cancel(batch.id);
    const ended = await endOf(batch);
    const answer = await cancel(batch.id);
    expect([answer.status, answer.body]).toEqual([200, ended]);
  });
});

describe('the model of a batch', () => {
  const answers = (...models: unknown[]) =>
    models.map((model, i) => line({ custom_id: `c-${i}` }, { answers: { model } })).join('\n');
  it.each<[string, unknown[], string]>([
    ['the one that all answers name', ['m-2024', 'm-2024', 'm-2024'], 'm-2024'],
    ['the requested one where they do not agree', ['m-1', 'm-2'], 'm'],
    ['the requested one where none names any', [undefined, null, 7], 'm'],
    ['the one that those name which name any', [undefined, 'm-2024'], 'm-2024'],
  ])('is %s', async (_what, models, expected) => {
    expect((await endOf(await create(answers(...models))))['model']).toBe(expected);
  });

  it('is the requested one where no answer counts', async () => {
    const text = line({}, { status: 400, answers: { model: 'other' } });
    expect((await endOf(await create(text)))['model']).toBe('m');
  });
});

describe('result files', () => {
  it.each([
    ['30 days', {}, 2_592_000],
    [
      'as long as was asked',
      { output_expires_after: { anchor: 'created_at', seconds: 7_200 } },
      7_200,
    ],
  ])('live %s from when they were made, and are files like others', async (_what, members, sec) => {
    const text = [line(), line({ custom_id: 'b' }, { status: 400 })].join('\n');
    const batch = await endOf(await create(text, members));
    const listed = await send('GET', '/files?purpose=batch_output&limit=2');
    const files = [];
    for (const kind of ['output', 'error'] as const) {
      const id = String(batch[`${kind}_file_id`]);
      const { body: file } = await send('GET', `/files/${id}`);
      const headers = { 'x-maas-username': 'wire' };
      const content = await fetch(`${stack.baseUrl}/files/${id}/content`, { headers });
      const bytes = Buffer.from(await content.arrayBuffer());
      expect(file).toEqual({
        ...{ id, object: 'file', bytes: bytes.length, purpose: 'batch_output' },
        filename: `${batch.id}_${kind}.jsonl`,
        created_at: expect.any(Number),
        expires_at: Number(file['created_at']) + sec,
        ...{ status: 'processed', status_details: null },
      });
      expect(Number(file['created_at'])).toBeLessThanOrEqual(Number(batch['completed_at']));
      expect(bytes.toString('latin1')).toMatch(/^[\x20-\x7e]+\n$/);
      files.push(file);
    }
    expect(new Set(files.map(({ id }) => id))).toEqual(
      new Set((listed.body['data'] as WireBatch[]).map(({ id }) => id)),
    );
  });
});

it('sends the bytes of each body as they are', async () => {
  const bodies = [
    '{ "model" : "m" ,"messages":[ ] , "n":1.0,"n":2,"big":9007199254740993,"exp":1E400 }',
    '{"messages":[],"mod\\u0065l":"m","é":"\\u00e9\\/😀","\\ud800":null}',
    '{"model":"x","model":"m","messages":[{"role":"user","content":"a\u2028b"}]}',
  ];
  const text = bodies.map(
    (body, i) =>
      ` {"body":{},"custom_id":"${i}","url":"${CHAT}","method":"POST","body": ${body} } `,
  );
  server.received.length = 0;
  expect((await endOf(await create(text.join('\r\n'))))['status']).toBe('completed');
  const sent = server.received.map(({ body }) => body.toString());
  expect(sent.sort()).toEqual([...bodies].sort());
});

type Told = [string, string | null, number | null];
const told = (batch: WireBatch) =>
  ((batch['errors'] as { data: Record<string, unknown>[] } | null)?.data ?? []).map(
    ({ code, param, line: at }) => [code, param, at],
  );

describe('an input file is refused', () => {
  const absent = (param: string, at = 1): Told => ['missing_required_parameter', param, at];
  it.each<[string, string, Told[]]>([
    ['no JSON', `${line()}\n{oops`, [['invalid_json_line', null, 2]]],
    ['two objects on a line', `${line()}\n${line()}${line()}`, [['invalid_json_line', null, 2]]],
    ['an array', `${line()}\n[]`, [['invalid_request', null, 2]]],
    ['a text', `${line()}\n"x"`, [['invalid_request', null, 2]]],
    ['no custom_id', line({ custom_id: undefined }), [absent('custom_id')]],
    ['a null custom_id', line({ custom_id: null }), [absent('custom_id')]],
    ['no method', line({ method: undefined }), [absent('method')]],
    ['no url', line({ url: undefined }), [absent('url')]],
    ['no body', line({ body: undefined }), [absent('body')]],
    ['nothing', '{}', ['custom_id', 'method', 'url', 'body'].map((name) => absent(name))],
    ['an id again', `${line()}\n\n${line()}`, [['duplicate_custom_id', 'custom_id', 3]]],
    [
      'an id again, spelled otherwise',
      `${line()}\n${line().replace('"custom_id":"a"', '"custom\\u005fid":"\\u0061"')}`,
      [['duplicate_custom_id', 'custom_id', 2]],
    ],
    ['a numeric id', line({ custom_id: 7 }), [['invalid_request', 'custom_id', 1]]],
    ['an empty id', line({ custom_id: '' }), [['invalid_request', 'custom_id', 1]]],
    ['a long id', line({ custom_id: 'x'.repeat(513) }), [['invalid_request', 'custom_id', 1]]],
    ['another url', line({ url: '/v1/embeddings' }), [['invalid_url', 'url', 1]]],
    ['a url with a slash', line({ url: `${CHAT}/` }), [['invalid_url', 'url', 1]]],
    ['another method', line({ method: 'GET' }), [['invalid_method', 'method', 1]]],
    ['a method in lower case', line({ method: 'post' }), [['invalid_method', 'method', 1]]],
    ['a body that is a list', line({ body: [] }), [['invalid_request', 'body', 1]]],
    ['no model', line({}, { model: undefined }), [['invalid_request', 'body.model', 1]]],
    ['an empty model', line({}, { model: '' }), [['invalid_request', 'body.model', 1]]],
    ['no messages', line({}, { messages: undefined }), [absent('body.messages')]],
    ['null messages', line({}, { messages: null }), [absent('body.messages')]],
    [
      'another model',
      `${line()}\n${line({ custom_id: 'b' }, { model: 'n' })}`,
      [['mismatched_model', 'body.model', 2]],
    ],
    ['a stream', line({}, { stream: true }), [['streaming_unsupported', 'body.stream', 1]]],
    ['a long line', line({}, { x: 'y'.repeat(33_000) }), [['line_too_long', null, 1]]],
    ['many lines', lines(121), [['too_many_tasks', null, null]]],
    ['many lines that wait', lines(111), [['token_limit_exceeded', null, null]]],
    ['many bytes', lines(20, { x: 'y'.repeat(14_000) }), [['file_too_large', null, null]]],
    [
      'faults of several kinds',
      ['\ufeff{"custom_id":5,"method":"GET","url":"x","body":{"stream":true}}', '', '[]', '{'].join(
        '\r\n',
      ),
      [
        ['invalid_request', 'custom_id', 1],
        ['invalid_method', 'method', 1],
        ['invalid_url', 'url', 1],
        ['invalid_request', 'body.model', 1],
        ['streaming_unsupported', 'body.stream', 1],
        ['invalid_request', null, 3],
        ['invalid_json_line', null, 4],
      ],
    ],
  ])('for %s', async (_what, text, expected) => {
    const batch = await create(text);
    const end = await endOf(batch);
    expectBatchShape(end);
    expect([end['status'], told(end)]).toEqual(['failed', expected]);
  });

  it.each<[string, number, number]>([
    ['all of 100', 100, 0],
    ['100 of 101, and one more', 101, 1],
    ['100 of 110, and ten more', 110, 10],
  ])('with %s faults', async (_what, count, further) => {
    const end = await endOf(await create(`{}\n${'[]\n'.repeat(count - 4)}`));
    const data = (end['errors'] as { data: Record<string, unknown>[] }).data;
    expect(data).toHaveLength(Math.min(count, 100) + (further > 0 ? 1 : 0));
    if (further === 0) return;
    expect(data.at(-1)).toEqual({
      code: 'too_many_errors',
      message: expect.stringMatching(`\\b${further} further`),
      param: null,
      line: null,
    });
  });

  it('for more inputs of embeddings than it may have', async () => {
    const url = '/v1/embeddings';
    const text = line({ url, body: { model: 'm', input: Array(21).fill('x') } });
    const end = await endOf(await create(text, { endpoint: url }));
    expect(told(end)).toEqual([['too_many_inputs', null, null]]);
  });

  it.each<[string, () => Promise<string>]>([
    ['never was', async () => 'file-none'],
    [
      'was deleted',
      async () => {
        const id = await upload(line());
        await send('DELETE', `/files/${id}`);
        return id;
      },
    ],
    ['is of another tenant', () => upload(line(), 'stranger')],
    ['has the id of a batch', async () => (await create(line())).id],
  ])('that %s', async (_what, fileId) => {
    const batch = await createOf(await fileId());
    expect(batch['status']).toBe('validating');
    const end = await endOf(batch);
    expectLife([batch, end]);
    expect([end['status'], told(end)]).toEqual(['failed', [['invalid_request', 'file_id', null]]]);
  });
});

describe('an input file passes', () => {
  it.each<[string, string]>([
    ['a BOM, CRLF and blank lines', `\ufeff${line()}\r\n \t\r\n\r\n${line({ custom_id: 'b' })}`],
    ['repeated members', line().replace('{', '{"custom_id":7,"method":"GET","url":"x",')],
    [
      'ids that only look alike',
      ['é', 'e\u0301', 'É', 'é '].map((id) => line({ custom_id: id })).join('\n'),
    ],
    [
      'halves of surrogate pairs and NUL',
      ['\ud800', '\udc00', '\0'].map((id) => line({ custom_id: id })).join('\n'),
    ],
    ['the longest id', line({ custom_id: '😀'.repeat(512) })],
    ['numbers beyond all bounds', line({}, { n: 1 }).replace('"n":1', '"n":1e400')],
    [
      'deep nesting',
      line({}, { n: 1 }).replace('"n":1', `"n":${'['.repeat(9_000)}${']'.repeat(9_000)}`),
    ],
    [
      'streams that are none',
      [false, null, 'true', 1]
        .map((stream, i) => line({ custom_id: `${i}` }, { stream }))
        .join('\n'),
    ],
    ['unknown members', line({ priority: 1, tags: [] })],
    ['a model of any letters', line({}, { model: '../日本語 \0 \ud800 __proto__' })],
  ])('with %s', async (_what, text) => {
    const end = await endOf(await create(text));
    expect([end['status'], told(end)]).toEqual(['completed', []]);
    const counts = end['request_counts'] as Record<string, number>;
    expect(counts).toEqual({ total: counts['total'], completed: counts['total'], failed: 0 });
  });
});
