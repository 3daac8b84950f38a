import { expectBatchShape, expectLife, type WireBatch } from './batch-shape';
import { STACK_START_MS } from '../support/stack';
import { until } from '../support/until';
import { CHAT, line, lines, startWireClient, type WireClient } from './wire-client';

/** Batches as plain HTTP shows them, without what the official clients hide. */

let client: WireClient;

beforeAll(async () => {
  client = await startWireClient();
}, STACK_START_MS);
afterAll(() => client?.close(), 60_000);

const statuses = (seen: readonly WireBatch[]) => [...new Set(seen.map(({ status }) => status))];
const isRunning = (id: string) =>
  until(async () => (await client.get(id))['status'] === 'in_progress', 30_000, 'the start', 10);

describe('a batch has every documented key', () => {
  it('when it completes', async () => {
    const seen = await client.lifeOf(
      await client.create(lines(40, { delay_ms: 200 }), { metadata: { a: 'b' } }),
    );
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

  it('when every request fails', async () => {
    const end = await client.endOf(await client.create(lines(3, { status: 404 })));
    expectBatchShape(end);
    expect(end).toMatchObject({ status: 'completed', output_file_id: null, model: 'm' });
    expect(end['request_counts']).toEqual({ total: 3, completed: 0, failed: 3 });
  });

  it('when its input file is refused', async () => {
    const seen = await client.lifeOf(await client.create(`${line()}\n[]`));
    expectLife(seen);
    expect(statuses(seen)).toEqual(['validating', 'failed']);
    const counts = { total: 0, completed: 0, failed: 0 };
    expect(seen.at(-1)).toMatchObject({ model: null, request_counts: counts });
  });

  it('when it is cancelled while running', async () => {
    const batch = await client.create(lines(40, { delay_ms: 2_000 }));
    await isRunning(batch.id);
    const cancelling = (await client.cancel(batch.id)).body;
    expect(cancelling['status']).toBe('cancelling');
    const seen = await client.lifeOf(cancelling);
    expectLife([batch, ...seen]);
    expect(statuses(seen)).toEqual(['cancelling', 'cancelled']);
    expect(seen.at(-1)).toMatchObject({ request_counts: { total: 40, failed: 0 } });
  });

  it('when it is cancelled before anything is sent', async () => {
    const batch = await client.create(lines(5, { delay_ms: 25_000 }));
    const cancelling = (await client.cancel(batch.id)).body;
    const seen = await client.lifeOf(cancelling);
    expectLife([batch, ...seen]);
    expect(seen.at(-1)?.['status']).toBe('cancelled');
  });

  it('when it expires', async () => {
    const batch = await client.create(lines(60, { delay_ms: 1_000 }), { completion_window: '3s' });
    expect(Number(batch['expires_at']) - Number(batch['created_at'])).toBe(3);
    const seen = await client.lifeOf(batch);
    expectLife(seen);
    expect(seen.at(-1)).toMatchObject({
      status: 'expired',
      request_counts: { total: 60, failed: 0 },
    });
  });

  it('in a list as well as alone', async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await client.endOf(await client.create(line()))).id);
    const { body } = await client.send('GET', '/batches?limit=3');
    const data = body['data'] as WireBatch[];
    expect(data.map(({ id }) => id)).toEqual(ids.toReversed());
    for (const batch of data) expect(batch).toEqual(await client.get(batch.id));
  });
});

describe('a cancel request', () => {
  it.each([
    ['completed', () => client.create(line())],
    ['failed', () => client.create(`${line()}\n[]`)],
    ['expired', () => client.create(line({}, { delay_ms: 5_000 }), { completion_window: '1s' })],
  ])(
    'for a batch that is %s is answered with 409, and clients do not retry it',
    async (status, made) => {
      const before = await client.endOf(await made());
      expect(before['status']).toBe(status);
      const answer = await client.cancel(before.id);
      expect(answer.status).toBe(409);
      expect(answer.headers.get('x-should-retry')).toBe('false');
      expect(answer.body.error).toEqual({
        message: expect.stringContaining(status),
        type: 'invalid_request_error',
        param: null,
        code: null,
      });
      expect(await client.get(before.id)).toEqual(before);
    },
  );

  it('for a cancelled batch changes nothing', async () => {
    const batch = await client.create(lines(5, { delay_ms: 25_000 }));
    await client.cancel(batch.id);
    const ended = await client.endOf(batch);
    const answer = await client.cancel(batch.id);
    expect([answer.status, answer.body]).toEqual([200, ended]);
  });
});

describe('the model of a batch', () => {
  const answers = (...models: unknown[]) =>
    models.map((model, i) => line({ custom_id: `c-${i}` }, { answers: { model } })).join('\n');
  it.each<[string, unknown[], string]>([
    ['the model that all answers name', ['m-2024', 'm-2024', 'm-2024'], 'm-2024'],
    ['the requested model if the answers disagree', ['m-1', 'm-2'], 'm'],
    ['the requested model if no answer names one', [undefined, null, 7], 'm'],
    ['the only model that answers name', [undefined, 'm-2024'], 'm-2024'],
  ])('is %s', async (_what, models, expected) => {
    expect((await client.endOf(await client.create(answers(...models))))['model']).toBe(expected);
  });

  it('is the requested model if every request failed', async () => {
    const text = line({}, { status: 400, answers: { model: 'other' } });
    expect((await client.endOf(await client.create(text)))['model']).toBe('m');
  });
});

describe('result files', () => {
  it.each([
    ['30 days', {}, 2_592_000],
    [
      'the requested time',
      { output_expires_after: { anchor: 'created_at', seconds: 7_200 } },
      7_200,
    ],
  ])('expire after %s and are files like others', async (_what, members, sec) => {
    const text = [line(), line({ custom_id: 'b' }, { status: 400 })].join('\n');
    const batch = await client.endOf(await client.create(text, members));
    const listed = await client.send('GET', '/files?purpose=batch_output&limit=2');
    const files = [];
    for (const kind of ['output', 'error'] as const) {
      const id = String(batch[`${kind}_file_id`]);
      const { body: file } = await client.send('GET', `/files/${id}`);
      const headers = { 'x-maas-username': 'wire' };
      const content = await client.stack.fetch(`${client.stack.baseUrl}/files/${id}/content`, {
        headers,
      });
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

it('sends the bytes of each request body unchanged', async () => {
  const bodies = [
    '{ "model" : "m" ,"messages":[ ] , "n":1.0,"n":2,"big":9007199254740993,"exp":1E400 }',
    '{"messages":[],"mod\\u0065l":"m","é":"\\u00e9\\/😀","\\ud800":null}',
    '{"model":"x","model":"m","messages":[{"role":"user","content":"a\u2028b"}]}',
  ];
  const text = bodies.map(
    (body, i) =>
      ` {"body":{},"custom_id":"${i}","url":"${CHAT}","method":"POST","body": ${body} } `,
  );
  client.server.received.length = 0;
  expect((await client.endOf(await client.create(text.join('\r\n'))))['status']).toBe('completed');
  const sent = client.server.received.map(({ body }) => body.toString());
  expect(sent.sort()).toEqual([...bodies].sort());
});

type Reported = [string, string | null, number | null];
const reported = (batch: WireBatch) =>
  ((batch['errors'] as { data: Record<string, unknown>[] } | null)?.data ?? []).map(
    ({ code, param, line: at }) => [code, param, at],
  );

describe('an input file is refused', () => {
  const absent = (param: string, at = 1): Reported => ['missing_required_parameter', param, at];
  it.each<[string, string, Reported[]]>([
    ['text that is not JSON', `${line()}\n{oops`, [['invalid_json_line', null, 2]]],
    ['two objects on a line', `${line()}\n${line()}${line()}`, [['invalid_json_line', null, 2]]],
    ['an array instead of an object', `${line()}\n[]`, [['invalid_request', null, 2]]],
    ['a string instead of an object', `${line()}\n"x"`, [['invalid_request', null, 2]]],
    ['a missing custom_id', line({ custom_id: undefined }), [absent('custom_id')]],
    ['a null custom_id', line({ custom_id: null }), [absent('custom_id')]],
    ['a missing method', line({ method: undefined }), [absent('method')]],
    ['a missing url', line({ url: undefined }), [absent('url')]],
    ['a missing body', line({ body: undefined }), [absent('body')]],
    ['an empty object', '{}', ['custom_id', 'method', 'url', 'body'].map((name) => absent(name))],
    ['a repeated custom_id', `${line()}\n\n${line()}`, [['duplicate_custom_id', 'custom_id', 3]]],
    [
      'a repeated custom_id in another spelling',
      `${line()}\n${line().replace('"custom_id":"a"', '"custom\\u005fid":"\\u0061"')}`,
      [['duplicate_custom_id', 'custom_id', 2]],
    ],
    ['a numeric custom_id', line({ custom_id: 7 }), [['invalid_request', 'custom_id', 1]]],
    ['an empty custom_id', line({ custom_id: '' }), [['invalid_request', 'custom_id', 1]]],
    [
      'a custom_id of 513 characters',
      line({ custom_id: 'x'.repeat(513) }),
      [['invalid_request', 'custom_id', 1]],
    ],
    ['another url than the endpoint', line({ url: '/v1/embeddings' }), [['invalid_url', 'url', 1]]],
    ['a url with a trailing slash', line({ url: `${CHAT}/` }), [['invalid_url', 'url', 1]]],
    ['another method than POST', line({ method: 'GET' }), [['invalid_method', 'method', 1]]],
    ['a method in lower case', line({ method: 'post' }), [['invalid_method', 'method', 1]]],
    ['a body that is a list', line({ body: [] }), [['invalid_request', 'body', 1]]],
    ['a missing model', line({}, { model: undefined }), [['invalid_request', 'body.model', 1]]],
    ['an empty model', line({}, { model: '' }), [['invalid_request', 'body.model', 1]]],
    ['missing messages', line({}, { messages: undefined }), [absent('body.messages')]],
    ['null messages', line({}, { messages: null }), [absent('body.messages')]],
    [
      'a second model',
      `${line()}\n${line({ custom_id: 'b' }, { model: 'n' })}`,
      [['mismatched_model', 'body.model', 2]],
    ],
    [
      'a streamed request',
      line({}, { stream: true }),
      [['streaming_unsupported', 'body.stream', 1]],
    ],
    ['a line that is too long', line({}, { x: 'y'.repeat(33_000) }), [['line_too_long', null, 1]]],
    ['too many lines', lines(121), [['too_many_tasks', null, null]]],
    [
      'more lines than the tenant may have waiting',
      lines(111),
      [['token_limit_exceeded', null, null]],
    ],
    ['too many bytes', lines(20, { x: 'y'.repeat(14_000) }), [['file_too_large', null, null]]],
    [
      'several kinds of errors',
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
    const batch = await client.create(text);
    const end = await client.endOf(batch);
    expectBatchShape(end);
    expect([end['status'], reported(end)]).toEqual(['failed', expected]);
  });

  it.each<[string, number, number]>([
    ['all of 100', 100, 0],
    ['100 of 101', 101, 1],
    ['100 of 110', 110, 10],
  ])('and lists %s errors', async (_what, count, further) => {
    const end = await client.endOf(await client.create(`{}\n${'[]\n'.repeat(count - 4)}`));
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

  it('for more inputs of embeddings than allowed', async () => {
    const url = '/v1/embeddings';
    const text = line({ url, body: { model: 'm', input: Array(21).fill('x') } });
    const end = await client.endOf(await client.create(text, { endpoint: url }));
    expect(reported(end)).toEqual([['too_many_inputs', null, null]]);
  });

  it.each<[string, () => Promise<string>]>([
    ['does not exist', async () => 'file-none'],
    [
      'was deleted',
      async () => {
        const id = await client.upload(line());
        await client.send('DELETE', `/files/${id}`);
        return id;
      },
    ],
    ['belongs to another tenant', () => client.upload(line(), 'stranger')],
    ['is not a file but a batch', async () => (await client.create(line())).id],
  ])('if it %s', async (_what, fileId) => {
    const batch = await client.createOf(await fileId());
    expect(batch['status']).toBe('validating');
    const end = await client.endOf(batch);
    expectLife([batch, end]);
    expect([end['status'], reported(end)]).toEqual([
      'failed',
      [['invalid_request', 'file_id', null]],
    ]);
  });
});

describe('an input file is accepted', () => {
  it.each<[string, string]>([
    ['a BOM, CRLF and blank lines', `\ufeff${line()}\r\n \t\r\n\r\n${line({ custom_id: 'b' })}`],
    ['repeated members', line().replace('{', '{"custom_id":7,"method":"GET","url":"x",')],
    [
      'custom_ids that only look alike',
      ['é', 'e\u0301', 'É', 'é '].map((id) => line({ custom_id: id })).join('\n'),
    ],
    [
      'lone surrogates and NUL in custom_ids',
      ['\ud800', '\udc00', '\0'].map((id) => line({ custom_id: id })).join('\n'),
    ],
    ['the longest custom_id', line({ custom_id: '😀'.repeat(512) })],
    ['numbers beyond all bounds', line({}, { n: 1 }).replace('"n":1', '"n":1e400')],
    [
      'deep nesting',
      line({}, { n: 1 }).replace('"n":1', `"n":${'['.repeat(9_000)}${']'.repeat(9_000)}`),
    ],
    [
      'values of stream that do not ask for one',
      [false, null, 'true', 1]
        .map((stream, i) => line({ custom_id: `${i}` }, { stream }))
        .join('\n'),
    ],
    ['unknown members', line({ priority: 1, tags: [] })],
    ['a model name with any characters', line({}, { model: '../日本語 \0 \ud800 __proto__' })],
  ])('with %s', async (_what, text) => {
    const end = await client.endOf(await client.create(text));
    expect([end['status'], reported(end)]).toEqual(['completed', []]);
    const counts = end['request_counts'] as Record<string, number>;
    expect(counts).toEqual({ total: counts['total'], completed: counts['total'], failed: 0 });
  });
});
