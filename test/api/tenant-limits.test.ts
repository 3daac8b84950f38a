import { batchForm, LINE, openTestApi, post, type TestApi, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

const ROOM = 3 * LINE.length;

let api: TestApi;
beforeAll(async () => {
  const limits = { maxBatches: 2, maxStoredBytes: ROOM };
  api = await openTestApi({ auth: { mode: 'header' }, limits });
}, POSTGRES_START_MS);
afterAll(() => api.close());
beforeEach(async () => {
  await api.database.pool.query('truncate files, batches, uploads, upload_parts, idempotency_keys');
});

const as = (tenant: string, more = {}) => ({ 'x-maas-username': tenant, ...more });
const send = (tenant: string, lines = 1, headers = {}) =>
  api.call(upload(batchForm(LINE.repeat(lines)), as(tenant, headers)));
const create = (tenant: string) =>
  api.call(
    post(
      '/v1/batches',
      { input_file_id: 'file-none', endpoint: '/v1/responses', completion_window: '24h' },
      as(tenant),
    ),
  );
const open = (tenant: string, bytes: number) =>
  api.call(
    post('/v1/uploads', { filename: 'a', purpose: 'batch', bytes, mime_type: 'x' }, as(tenant)),
  );

describe('a tenant with as many open batches as it may have', () => {
  it('is refused another one, also at the same time, until one has ended', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => create('ann')));
    const created = answers.filter(({ status }) => status === 200);
    expect(created).toHaveLength(2);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.body.error).toEqual({
      message: expect.stringContaining('2 batches'),
      type: 'requests',
      param: null,
      code: 'rate_limit_exceeded',
    });
    const seconds = Number(refused?.headers['retry-after']);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect((await create('bob')).status).toBe(200);
    await api.database.pool.query(`update batches set status = 'completed' where id = $1`, [
      created[0]?.body.id,
    ]);
    expect((await create('ann')).status).toBe(200);
  });
});

it('sees how many more batches it may open on every answer to a create, and on no other', async () => {
  const room = ({ headers }: { headers: Record<string, string> }) =>
    ['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}-requests`]);
  const wrong = await api.call(post('/v1/batches', {}, as('cleo')));
  expect([wrong.status, room(wrong)]).toEqual([400, ['2', '2', '0s']]);
  expect(room(await create('cleo'))).toEqual(['2', '1', '0s']);
  expect(room(await create('cleo'))).toEqual(['2', '0', '5s']);
  const full = await create('cleo');
  expect([full.status, room(full)]).toEqual([429, ['2', '0', '5s']]);
  const list = await api.call({ method: 'GET', url: '/v1/batches', headers: as('cleo') });
  expect(room(list)).toEqual([undefined, undefined, undefined]);
});

it('stays within its limit if repeated requests arrive at once, and the repetition succeeds', async () => {
  const body = { input_file_id: 'file-x', endpoint: '/v1/responses', completion_window: '24h' };
  const send = (key: string) =>
    api.call(post('/v1/batches', body, as('dan', { 'idempotency-key': key })));
  const answers = await Promise.all(['a', 'a', 'b', 'b', 'c', 'c'].map(send));
  const made = answers.filter(({ status }) => status === 200);
  expect(new Set(made.map(({ body: { id } }) => id as string)).size).toBe(2);
  expect(made).toHaveLength(4);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(2);
});

describe('a tenant with as many bytes as it may store', () => {
  it('is refused more, also at the same time, and nothing of them remains', async () => {
    const before = (await api.keys()).length;
    const answers = await Promise.all(Array.from({ length: 5 }, () => send('ann')));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.body.error).toMatchObject({
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    });
    expect(refused?.headers).toMatchObject({
      'x-should-retry': 'false',
      'retry-after': expect.stringMatching(/^([1-9]|[1-5]\d|60)$/),
    });
    expect((await api.keys()).length).toBe(before + 3);
    expect((await send('bob')).status).toBe(200);
  });

  it('may use the space again that a delete or a cancelled upload has freed', async () => {
    const { id } = (await open('ann', ROOM)).body;
    expect((await send('ann')).status).toBe(429);
    expect((await open('ann', 1)).status).toBe(429);
    await api.call(post(`/v1/uploads/${id}/cancel`, {}, as('ann')));
    const file = (await send('ann', 3)).body.id;
    expect((await send('ann')).status).toBe(429);
    await api.call({ method: 'DELETE', url: `/v1/files/${file}`, headers: as('ann') });
    expect((await send('ann')).status).toBe(200);
  });

  it('may repeat a request whose answer was lost', async () => {
    const key = { 'idempotency-key': 'again' };
    const first = await send('ann', 3, key);
    expect((await send('ann', 3, key)).body).toEqual(first.body);
  });
});
