import { batchForm, LINE, openTestApi, post, type TestApi, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(async () => (api = await openTestApi({ auth: { mode: 'header' } })), POSTGRES_START_MS);
afterAll(() => api.close());
beforeEach(() => (api.clock.nowMs = 1_700_000_000_000));

const BATCH = {
  input_file_id: 'file-none',
  endpoint: '/v1/responses',
  completion_window: '24h',
  metadata: { a: '1', b: '2' },
};
const create = (key: string, body: unknown = BATCH, tenant = 'ann') =>
  api.call(post('/v1/batches', body, { 'idempotency-key': key, 'x-maas-username': tenant }));
const send = (key: string, form = batchForm(), tenant = 'ann') =>
  api.call(upload(form, { 'idempotency-key': key, 'x-maas-username': tenant }));
const objects = async () => (await api.keys()).filter((key) => key.startsWith('files/')).length;

describe('a batch with an Idempotency-Key', () => {
  it('is created once, however often it is requested, and in any order of members', async () => {
    const first = await create('once');
    const started = api.batchWorkflows.started.length;
    const members = Object.entries({ ...BATCH, metadata: { b: '2', a: '1' } }).reverse();
    const again = await create('once', Object.fromEntries(members));
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
    expect(api.batchWorkflows.started).toHaveLength(started);
  });

  it('is created once by simultaneous requests', async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => create('race')));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  });

  it('is answered in its current state when the request is repeated', async () => {
    const { id } = (await create('now')).body;
    await api.call(post(`/v1/batches/${id}/cancel`, {}, { 'x-maas-username': 'ann' }));
    expect((await create('now')).body).toMatchObject({ id, status: 'cancelling' });
  });

  it('refuses other content under the same key', async () => {
    await create('reused');
    const answer = await create('reused', { ...BATCH, metadata: null });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      type: 'invalid_request_error',
      code: 'idempotency_key_reused',
      param: 'Idempotency-Key',
    });
  });

  it('has a key that belongs to its tenant and its route for a day', async () => {
    const { id } = (await create('mine')).body;
    expect((await create('mine', BATCH, 'bob')).body.id).not.toBe(id);
    expect((await send('mine')).status).toBe(200);
    api.clock.nowMs += 86_399_000;
    expect((await create('mine')).body.id).toBe(id);
    api.clock.nowMs += 1_000;
    expect((await create('mine', { ...BATCH, metadata: null })).status).toBe(200);
  });

  it('does not use up its key if it is refused', async () => {
    expect((await create('free', { ...BATCH, endpoint: '/v1/none' })).status).toBe(400);
    expect((await create('free')).status).toBe(200);
  });

  it.each<[string, unknown]>([
    ['metadata that is null', { ...BATCH, metadata: null }],
    ['metadata that is empty', { ...BATCH, metadata: {} }],
    ['another value in metadata', { ...BATCH, metadata: { a: '1', b: '3' } }],
    ['another file', { ...BATCH, input_file_id: 'file-other' }],
    ['another endpoint', { ...BATCH, endpoint: '/v1/embeddings' }],
    ['the same window in other words', { ...BATCH, completion_window: '1d' }],
    ['an expiry', { ...BATCH, output_expires_after: { anchor: 'created_at', seconds: 3600 } }],
  ])('treats %s as other content', async (what, body) => {
    await create(`content ${what}`);
    const answer = await create(`content ${what}`, body);
    expect([answer.status, answer.body.error?.code]).toEqual([400, 'idempotency_key_reused']);
    expect((await create(`content ${what}`)).status).toBe(200);
  });

  it('treats other spellings of the same values as the same content', async () => {
    const members = { ...BATCH, metadata: null, output_expires_after: null };
    const { id } = (await create('spelling', members)).body;
    const absent = { ...BATCH, metadata: undefined };
    expect((await create('spelling', absent)).body.id).toBe(id);
    const headers = {
      'idempotency-key': 'spelling',
      'x-maas-username': 'ann',
      'content-type': 'application/json',
    };
    const text = JSON.stringify(absent, null, 2).replace('"endpoint"', '"\\u0065ndpoint"');
    for (const payload of [text, text.replace('{', '{"endpoint":"no",')]) {
      const answer = await api.call({ method: 'POST', url: '/v1/batches', headers, payload });
      expect(answer.body.id).toBe(id);
    }
  });

  it('is created by one of two simultaneous requests with different content', async () => {
    const bodies = [BATCH, { ...BATCH, metadata: null }];
    const answers = await Promise.all([...bodies, ...bodies].map((body) => create('fight', body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 400, 400]);
    const made = answers.filter(({ status }) => status === 200);
    expect(new Set(made.map(({ body }) => body.id)).size).toBe(1);
  });

  it('is answered even if its input file was deleted since', async () => {
    const file = (await send('its file')).body.id as string;
    const { id } = (await create('deleted since', { ...BATCH, input_file_id: file })).body;
    const headers = { 'x-maas-username': 'ann' };
    await api.call({ method: 'DELETE', url: `/v1/files/${file}`, headers });
    expect((await create('deleted since', { ...BATCH, input_file_id: file })).body.id).toBe(id);
  });

  it.each(['x', 'x'.repeat(255), 'a b', 'a,b', '"q"', '~!@#$%^&*()'])(
    'accepts the key %j',
    async (key) => {
      const { id } = (await create(key)).body;
      expect((await create(key)).body.id).toBe(id);
    },
  );

  it.each([
    ['empty', ''],
    ['too long', 'x'.repeat(256)],
    ['not printable', 'a\tb'],
    ['ü', 'ü'],
  ])('refuses a malformed key: %s', async (_what, key) => {
    const answer = await create(key);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ code: 'invalid_value', param: 'Idempotency-Key' });
  });
});

describe('a file with an Idempotency-Key', () => {
  it('is stored once, even if the request is repeated', async () => {
    const before = await objects();
    const first = await send('file');
    const answers = await Promise.all([send('file'), send('file')]);
    for (const answer of answers) expect(answer.body).toEqual(first.body);
    expect(await objects()).toBe(before + 1);
  });

  it.each([
    ['content', batchForm(`${LINE}${LINE}`)],
    ['name', batchForm(LINE, 'other.jsonl')],
    ['purpose', [{ name: 'purpose', value: 'user_data' }, ...batchForm().slice(1)]],
    [
      'expiry',
      [
        ...batchForm(),
        { name: 'expires_after[anchor]', value: 'created_at' },
        { name: 'expires_after[seconds]', value: '3600' },
      ],
    ],
  ])('refuses another %s under the same key, and keeps nothing of it', async (what, form) => {
    await send(`other-${what}`);
    const before = await objects();
    const answer = await send(`other-${what}`, form);
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe('idempotency_key_reused');
    expect(await objects()).toBe(before);
  });

  it('answers 404 if it was deleted since', async () => {
    const { id } = (await send('gone')).body;
    await api.call({
      method: 'DELETE',
      url: `/v1/files/${id}`,
      headers: { 'x-maas-username': 'ann' },
    });
    expect((await send('gone')).status).toBe(404);
  });
});
