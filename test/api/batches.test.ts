import { batchForm, openTestApi, post, type TestApi, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
let fileId: string;
beforeAll(async () => {
  api = await openTestApi({
    outbox: { startWaitMs: 50, repeatStartAfterMs: [], repeatCancelAfterMs: [30, 60] },
  });
  fileId = (await api.call(upload(batchForm()))).body.id as string;
}, POSTGRES_START_MS);
afterAll(() => api.close());
afterEach(() => Object.assign(api.batchWorkflows, { fail: false, hang: false }));

const NOW_SEC = 1_700_000_000;
const valid = () => ({
  input_file_id: fileId,
  endpoint: '/v1/chat/completions',
  completion_window: '24h',
});
const create = (body: unknown = valid()) => api.call(post('/v1/batches', body));
const created = async (body: unknown = valid()) => (await create(body)).body.id as string;
const get = (id: string) => api.call({ method: 'GET', url: `/v1/batches/${id}` });
const row = async (id: string) => {
  const { rows } = await api.database.pool.query<Record<string, unknown>>(
    'select * from batches where id = $1',
    [id],
  );
  return rows[0]!;
};

/** Rows of `output_expires_after` with one member that is wrong. */
function wrongExpiry(member: string, values: [unknown, string][]): [object, string, string][] {
  const right = { anchor: 'created_at', seconds: 3600 };
  return values.map(([value, code]) => [
    { output_expires_after: { ...right, [member]: value } },
    `output_expires_after.${member}`,
    code,
  ]);
}

describe('creating a batch', () => {
  it('answers an object with every key, null when empty, and starts the workflow', async () => {
    const answer = await create({ ...valid(), metadata: { team: 'red' } });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^batch_[0-9a-f]{32}$/),
      object: 'batch',
      endpoint: '/v1/chat/completions',
      model: null,
      errors: null,
      input_file_id: fileId,
      completion_window: '24h',
      status: 'validating',
      output_file_id: null,
      error_file_id: null,
      created_at: NOW_SEC,
      in_progress_at: null,
      expires_at: NOW_SEC + 86_400,
      finalizing_at: null,
      completed_at: null,
      failed_at: null,
      expired_at: null,
      cancelling_at: null,
      cancelled_at: null,
      request_counts: { total: 0, completed: 0, failed: 0 },
      usage: {
        input_tokens: 0,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 0,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 0,
      },
      metadata: { team: 'red' },
    });
    const { id } = answer.body;
    expect((await get(id)).body).toEqual(answer.body);
    expect(api.batchWorkflows.started.at(-1)).toMatchObject({
      id,
      tenant: 'default',
      endpoint: '/v1/chat/completions',
      inputFileId: fileId,
      expiresAtSec: NOW_SEC + 86_400,
    });
    expect((await row(id))['workflow_started_at']).toBeInstanceOf(Date);
  });

  it.each([
    ['1s', 1],
    ['90s', 90],
    ['30m', 1_800],
    ['48h', 172_800],
    ['30d', 2_592_000],
  ])('accepts the completion window %s', async (window, seconds) => {
    const { body } = await create({ ...valid(), completion_window: window });
    expect(body).toMatchObject({
      completion_window: window,
      expires_at: NOW_SEC + seconds,
    });
  });

  it.each(['720h', '43200m', '2592000s'])('accepts %s, which is 30 days', async (window) => {
    const { body } = await create({ ...valid(), completion_window: window });
    expect(body.expires_at).toBe(NOW_SEC + 2_592_000);
  });

  it.each([
    ...['', '0s', '00s', '024h', '1.5h', '-1h', '+1h', ' 24h', '24h ', '24h\n', '24H', '24', 'h'],
    ...['1w', '1e3s', '1h30m', '1y', '１h', '31d', '721h', '43201m', '2592001s', '9'.repeat(400)],
  ])('refuses the completion window %j', async (window) => {
    const answer = await create({ ...valid(), completion_window: window });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ param: 'completion_window', code: 'invalid_value' });
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['no members', '{}'],
    ['null for all', '{"input_file_id":null,"endpoint":null,"completion_window":null}'],
  ])('reports the missing input file first if the body has %s', async (_what, payload) => {
    const answer = await api.call({ method: 'POST', url: '/v1/batches', payload });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      param: 'input_file_id',
      code: 'missing_required_parameter',
    });
  });

  it.each<[string, string | Buffer]>([
    ['an array', '[]'],
    ['null', 'null'],
    ['a text', '"x"'],
    ['a number', '1'],
    ['broken JSON', '{"a":'],
    ['NaN', '{"a":NaN}'],
    ['two values', '{}{}'],
    ['a BOM', '\ufeff{}'],
    ['UTF-16', Buffer.from('{}', 'utf16le')],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ])('refuses a body that is %s', async (_what, payload) => {
    const answer = await api.call({ method: 'POST', url: '/v1/batches', payload });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      type: 'invalid_request_error',
      param: null,
      code: null,
    });
  });

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'text/plain',
    'application/x-www-form-urlencoded',
  ])('reads JSON of any content type from a client with a key: %s', async (type) => {
    const payload = JSON.stringify(valid());
    const headers = { 'content-type': type, authorization: 'Bearer unused' };
    const answer = await api.call({ method: 'POST', url: '/v1/batches', payload, headers });
    expect(answer.status).toBe(200);
  });

  it('uses the last value of a repeated member', async () => {
    const payload = JSON.stringify(valid()).replace('{', '{"endpoint":"no","metadata":7,');
    const last = payload.replace(/\}$/, ',"metadata":null}');
    const headers = { 'content-type': 'application/json' };
    const request = { method: 'POST', url: '/v1/batches', headers, payload: last } as const;
    const answer = await api.call(request);
    expect([answer.status, answer.body.metadata]).toEqual([200, null]);
  });

  it('reports the first of several faults, in the order of the fields', async () => {
    const faults: [string, unknown, unknown][] = [
      ['input_file_id', 7, fileId],
      ['endpoint', '/v1/none', '/v1/responses'],
      ['completion_window', '25', '24h'],
      ['metadata', [], {}],
      ['output_expires_after', 1, undefined],
      ['zzz', 1, undefined],
    ];
    const body: Record<string, unknown> = {};
    for (const [name, wrong] of [...faults].reverse()) body[name] = wrong;
    for (const [name, , right] of faults) {
      const answer = await create(body);
      expect([answer.status, answer.body.error?.param]).toEqual([400, name]);
      body[name] = right;
    }
    expect((await create(body)).status).toBe(200);
  });

  it.each<[string, object | null]>([
    ['null', null],
    ['empty', {}],
    ['16 pairs', Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, `${i}`]))],
    ['empty texts', { '': '', a: '' }],
    ['the longest texts', { ['k'.repeat(64)]: 'v'.repeat(512) }],
    ['keys that look like paths', { 'a.b': '1', 'a[0]': '2', constructor: '3' }],
  ])('returns metadata that is %s', async (_what, metadata) => {
    const answer = await create({ ...valid(), metadata });
    expect([answer.status, answer.body.metadata]).toEqual([200, metadata]);
    expect((await get(answer.body.id as string)).body.metadata).toEqual(metadata);
  });

  it.each(['file-', 'batch_x', '../../etc/passwd', 'file-é日😀', ' ', 'x'.repeat(255)])(
    'accepts any text as the id of a file that does not exist: %j',
    async (id) => {
      const answer = await create({ ...valid(), input_file_id: id });
      expect(answer.status).toBe(200);
      expect((await get(answer.body.id as string)).body.input_file_id).toBe(id);
    },
  );

  it('treats null as absent, and returns metadata unchanged', async () => {
    expect((await create({ ...valid(), metadata: null, output_expires_after: null })).status).toBe(
      200,
    );
    const odd = '{"b":"1","a":"\\u0000\\ud800","__proto__":"p","":""}';
    const text = JSON.stringify(valid()).replace(/\}$/, `,"metadata":${odd}}`);
    const answer = await api.call({ method: 'POST', url: '/v1/batches', payload: text });
    expect(answer.status).toBe(200);
    expect(JSON.stringify(answer.body.metadata)).toBe(odd);
    expect(JSON.stringify((await get(answer.body.id as string)).body.metadata)).toBe(odd);
  });

  it('counts metadata in code points', async () => {
    const metadata = { ['😀'.repeat(64)]: '😀'.repeat(512) };
    expect((await create({ ...valid(), metadata })).body.metadata).toEqual(metadata);
  });

  it('stores the lifetime of the result files', async () => {
    const id = await created({
      ...valid(),
      output_expires_after: { anchor: 'created_at', seconds: 3600 },
    });
    expect(await row(id)).toMatchObject({ output_expires_after: 3600 });
  });

  it.each([
    [{ input_file_id: undefined }, 'input_file_id', 'missing_required_parameter'],
    [{ input_file_id: null, endpoint: null }, 'input_file_id', 'missing_required_parameter'],
    [{ input_file_id: '' }, 'input_file_id', 'invalid_value'],
    [{ input_file_id: 7 }, 'input_file_id', 'invalid_type'],
    [{ input_file_id: 'a\u0000b' }, 'input_file_id', 'invalid_value'],
    [{ input_file_id: 'x'.repeat(3000) }, 'input_file_id', 'invalid_value'],
    [{ endpoint: undefined }, 'endpoint', 'missing_required_parameter'],
    [{ endpoint: '' }, 'endpoint', 'invalid_value'],
    [{ endpoint: '/v1/nothing', completion_window: '1y' }, 'endpoint', 'invalid_value'],
    [{ endpoint: ['/v1/responses'] }, 'endpoint', 'invalid_type'],
    [{ completion_window: undefined }, 'completion_window', 'missing_required_parameter'],
    [{ completion_window: '0s' }, 'completion_window', 'invalid_value'],
    [{ completion_window: '24H' }, 'completion_window', 'invalid_value'],
    [{ completion_window: '31d' }, 'completion_window', 'invalid_value'],
    [{ completion_window: '99999999999999999999d' }, 'completion_window', 'invalid_value'],
    [{ completion_window: 24 }, 'completion_window', 'invalid_type'],
    [{ completion_window: null }, 'completion_window', 'missing_required_parameter'],
    [{ completion_window: ['24h'] }, 'completion_window', 'invalid_type'],
    [{ endpoint: null }, 'endpoint', 'missing_required_parameter'],
    [{ endpoint: '/v1/chat/completions/' }, 'endpoint', 'invalid_value'],
    [{ endpoint: 'v1/chat/completions' }, 'endpoint', 'invalid_value'],
    [{ endpoint: '/v1/images/edits' }, 'endpoint', 'invalid_value'],
    [{ endpoint: '/v1/videos' }, 'endpoint', 'invalid_value'],
    [{ input_file_id: [] }, 'input_file_id', 'invalid_type'],
    [{ input_file_id: {} }, 'input_file_id', 'invalid_type'],
    [{ metadata: false }, 'metadata', 'invalid_type'],
    [{ metadata: 0 }, 'metadata', 'invalid_type'],
    [{ metadata: { a: null } }, 'metadata.a', 'invalid_type'],
    [{ metadata: { a: 1 } }, 'metadata.a', 'invalid_type'],
    [{ metadata: { 'a.b': true } }, 'metadata.a.b', 'invalid_type'],
    [{ metadata: { a: { b: 'c' } } }, 'metadata.a', 'invalid_type'],
    [{ metadata: { a: 'ok', b: 2 } }, 'metadata.b', 'invalid_type'],
    [{ metadata: { a: '😀'.repeat(513) } }, 'metadata.a', 'string_above_max_length'],
    [{ metadata: { ['😀'.repeat(65)]: '' } }, 'metadata', 'property_name_above_max_length'],
    [{ metadata: 'a', unknown: 1 }, 'metadata', 'invalid_type'],
    [{ metadata: [] }, 'metadata', 'invalid_type'],
    [{ metadata: { tags: [1] } }, 'metadata.tags', 'invalid_type'],
    [{ metadata: { a: 'x'.repeat(513) } }, 'metadata.a', 'string_above_max_length'],
    [{ metadata: { ['x'.repeat(65)]: 'a' } }, 'metadata', 'property_name_above_max_length'],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ''])) },
      'metadata',
      'object_above_max_properties',
    ],
    [{ metadata: { nightshift_hops: '4' } }, 'metadata.nightshift_hops', 'delegation_loop'],
    [{ output_expires_after: 3600 }, 'output_expires_after', 'invalid_type'],
    [{ output_expires_after: 'created_at' }, 'output_expires_after', 'invalid_type'],
    [{ output_expires_after: [] }, 'output_expires_after', 'invalid_type'],
    [{ output_expires_after: {} }, 'output_expires_after.anchor', 'missing_required_parameter'],
    ...wrongExpiry('anchor', [
      [null, 'missing_required_parameter'],
      ['', 'invalid_value'],
      ['CREATED_AT', 'invalid_value'],
      [1, 'invalid_type'],
    ]),
    ...wrongExpiry('seconds', [
      [null, 'missing_required_parameter'],
      [3600.5, 'invalid_type'],
      [true, 'invalid_type'],
      [0, 'integer_below_min_value'],
      [-3600, 'integer_below_min_value'],
      [1e20, 'integer_above_max_value'],
    ]),
    [
      { output_expires_after: { seconds: 3600 } },
      'output_expires_after.anchor',
      'missing_required_parameter',
    ],
    [
      { output_expires_after: { anchor: 'now', seconds: 3600 } },
      'output_expires_after.anchor',
      'invalid_value',
    ],
    [
      { output_expires_after: { anchor: 'created_at' } },
      'output_expires_after.seconds',
      'missing_required_parameter',
    ],
    [
      { output_expires_after: { anchor: 'created_at', seconds: '3600' } },
      'output_expires_after.seconds',
      'invalid_type',
    ],
    [
      { output_expires_after: { anchor: 'created_at', seconds: 3599 } },
      'output_expires_after.seconds',
      'integer_below_min_value',
    ],
    [
      { output_expires_after: { anchor: 'created_at', seconds: 2_592_001 } },
      'output_expires_after.seconds',
      'integer_above_max_value',
    ],
    [
      { output_expires_after: { anchor: 'created_at', seconds: 3600, x: 1 } },
      'output_expires_after.x',
      'unknown_parameter',
    ],
    [{ unknown: 1 }, 'unknown', 'unknown_parameter'],
    [{ unknown: null }, 'unknown', 'unknown_parameter'],
    [{ model: 'm' }, 'model', 'unknown_parameter'],
    [{ constructor: 1 }, 'constructor', 'unknown_parameter'],
  ])('refuses %j, naming the first fault', async (change, param, code) => {
    const started = api.batchWorkflows.started.length;
    const answer = await create({ ...valid(), ...change });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toEqual({
      message: expect.any(String),
      type: 'invalid_request_error',
      param,
      code,
    });
    expect(api.batchWorkflows.started.length).toBe(started);
  });

  it('refuses a file of another purpose before it checks the other fields', async () => {
    const form = [{ name: 'purpose', value: 'vision' }, batchForm()[1]!];
    const { id } = (await api.call(upload(form))).body;
    const answer = await create({ input_file_id: id });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ param: 'input_file_id', code: 'invalid_value' });
  });

  it('accepts a file that does not exist: the batch fails later', async () => {
    const answer = await create({ ...valid(), input_file_id: 'file-none' });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ status: 'validating', input_file_id: 'file-none' });
    expect(await row(answer.body.id as string)).toMatchObject({ input_object_key: null });
  });

  it('accepts an expired file: the batch fails later', async () => {
    const expiry = [
      { name: 'expires_after[anchor]', value: 'created_at' },
      { name: 'expires_after[seconds]', value: '3600' },
    ];
    const { id: file } = (await api.call(upload([...batchForm(), ...expiry]))).body;
    const inputOf = async () => {
      const id = await created({ ...valid(), input_file_id: file });
      return (await row(id))['input_object_key'];
    };
    api.clock.nowMs += 3_599_000;
    expect(await inputOf()).toContain(file);
    api.clock.nowMs += 1_000;
    expect(await inputOf()).toBeNull();
    api.clock.nowMs -= 3_600_000;
  });

  it('accepts a deleted file, too; a delete after the creation changes nothing', async () => {
    const { id: file } = (await api.call(upload(batchForm()))).body;
    const before = await created({ ...valid(), input_file_id: file });
    await api.call({ method: 'DELETE', url: `/v1/files/${file}` });
    const after = await created({ ...valid(), input_file_id: file });
    const { input_object_key: key, input_bytes: bytes } = await row(before);
    expect(bytes).toBeGreaterThan(0);
    await expect(api.store.head(String(key))).resolves.toEqual({ size: bytes });
    expect(await row(after)).toMatchObject({ input_object_key: null, input_bytes: null });
  });
});
