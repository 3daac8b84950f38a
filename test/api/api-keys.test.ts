import { createApiKeyRepository, type ApiKeyRepository } from '../../storage/postgres/api-keys';
import { batchForm, openTestApi, post, type TestApi, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

const NOW_SEC = 1_700_000_000;

let api: TestApi;
let keys: ApiKeyRepository;
beforeAll(async () => {
  api = await openTestApi({ auth: { mode: 'api_key' } });
  keys = createApiKeyRepository(api.database.pool);
}, POSTGRES_START_MS);
afterAll(() => api.close());
beforeEach(() => (api.clock.nowMs = NOW_SEC * 1000));

const make = (tenant: string, expiresAtSec: number | null = null) =>
  keys.create({ tenant, name: 'a test', expiresAtSec, nowSec: NOW_SEC });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const list = (headers: Record<string, string>) =>
  api.call({ method: 'GET', url: '/v1/files', headers });

const refusal = (code: string | null) => ({
  error: { message: expect.any(String), type: 'invalid_request_error', param: null, code },
});

it('lets in whoever has a key, as its tenant', async () => {
  const { key } = await make('ann');
  expect(key).toMatch(/^nsk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  const answer = await list({ authorization: `bearer ${key}` });
  expect(answer.status).toBe(200);
  expect(answer.headers['openai-organization']).toBe('ann');
});

it.each([{}, { authorization: 'Basic abc' }, { authorization: 'Bearer' }])(
  'says that there is no key: %j',
  async (headers) => {
    const answer = await list(headers);
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(refusal(null));
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  },
);

it('refuses a key that is unknown, changed, revoked or over, all with the same words', async () => {
  const revoked = await make('ann');
  await keys.revoke(revoked.record.id, NOW_SEC);
  const { key } = await make('ann');
  const changed = key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A');
  const over = (await make('ann', NOW_SEC)).key;
  const unknown = `nsk_${'0'.repeat(16)}_${'A'.repeat(43)}`;
  const bodies = [];
  for (const wrong of ['sk-none', changed, revoked.key, over, unknown, `${key}x`]) {
    const answer = await list(bearer(wrong));
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(refusal('invalid_api_key'));
    expect(JSON.stringify(answer.body)).not.toContain(wrong);
    bodies.push(JSON.stringify(answer.body));
  }
  expect(new Set(bodies).size).toBe(1);
});

it('lets a key in until it is over or revoked', async () => {
  const { key, record } = await make('ann', NOW_SEC + 60);
  api.clock.nowMs += 59_000;
  expect((await list(bearer(key))).status).toBe(200);
  api.clock.nowMs += 1_000;
  expect((await list(bearer(key))).status).toBe(401);
  api.clock.nowMs -= 30_000;
  expect(await keys.revoke(record.id, NOW_SEC)).toBe(true);
  expect(await keys.revoke('none', NOW_SEC)).toBe(false);
  expect((await list(bearer(key))).status).toBe(401);
});

it('notes the last use to the minute, and keeps no key', async () => {
  const { key, record } = await make('cleo');
  const lastUse = async () => (await keys.list('cleo'))[0]?.lastUsedAtSec;
  expect(await lastUse()).toBeNull();
  await list(bearer(key));
  api.clock.nowMs += 59_000;
  await list(bearer(key));
  expect(await lastUse()).toBe(NOW_SEC);
  api.clock.nowMs += 1_000;
  await list(bearer(key));
  expect(await lastUse()).toBe(NOW_SEC + 60);
  const { rows } = await api.database.pool.query('select * from api_keys where id = $1', [
    record.id,
  ]);
  expect(JSON.stringify(rows)).not.toContain(key.slice(-43));
});

it('shows a tenant nothing of another one, on any route', async () => {
  const [ann, bob] = [bearer((await make('ann')).key), bearer((await make('bob')).key)];
  const file = (await api.call(upload(batchForm(), ann))).body.id;
  const batch = (
    await api.call(
      post(
        '/v1/batches',
        { input_file_id: file, endpoint: '/v1/responses', completion_window: '24h' },
        ann,
      ),
    )
  ).body.id;
  const open = { filename: 'a', purpose: 'batch', bytes: 1, mime_type: 'x' };
  const part = (await api.call(post('/v1/uploads', open, ann))).body.id;
  for (const [method, url] of [
    ['GET', `/v1/files/${file}`],
    ['GET', `/v1/files/${file}/content`],
    ['DELETE', `/v1/files/${file}`],
    ['GET', `/v1/batches/${batch}`],
    ['POST', `/v1/batches/${batch}/cancel`],
    ['POST', `/v1/uploads/${part}/parts`],
    ['POST', `/v1/uploads/${part}/complete`],
    ['POST', `/v1/uploads/${part}/cancel`],
  ] as const) {
    expect([url, (await api.call({ method, url, headers: bob })).status]).toEqual([url, 404]);
    const stranger = await api.call({ method, url });
    expect([url, stranger.status]).toEqual([url, 401]);
  }
  for (const url of ['/v1/files', '/v1/batches']) {
    const { body } = await api.call({ method: 'GET', url, headers: bob });
    expect(body.data.filter(({ id }: { id: string }) => [file, batch].includes(id))).toEqual([]);
  }
});

it('asks nobody for a key who looks at its health', async () => {
  expect((await api.call({ method: 'GET', url: '/health' })).status).toBe(200);
});
