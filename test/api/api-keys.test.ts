import { createApiKeyRepository, type ApiKeyRepository } from '../../storage/postgres/api-keys';
import { operations } from '../../api/openapi/operations';
import { openTestApi, type TestApi } from '../support/api';
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

it('serves a request with a key as the tenant of the key', async () => {
  const { key } = await make('ann');
  expect(key).toMatch(/^nsk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  const answer = await list({ authorization: `bearer ${key}` });
  expect(answer.status).toBe(200);
  expect(answer.headers['openai-organization']).toBe('ann');
});

it.each([
  {},
  { authorization: 'Basic abc' },
  { authorization: 'Bearer' },
  { authorization: 'Bearer  ' },
  { authorization: '' },
  { 'api-key': 'nsk_0' },
])('answers 401 without a code if there is no key: %j', async (headers) => {
  const answer = await list(headers);
  expect(answer.status).toBe(401);
  expect(answer.body).toEqual(refusal(null));
  expect(answer.headers['www-authenticate']).toBe('Bearer');
});

describe('the header Authorization', () => {
  const ann = () => make('ann').then(({ key }) => key);

  it.each([
    ['the scheme in small letters', (key: string) => `bearer ${key}`],
    ['more spaces', (key: string) => `BEARER   ${key}  `],
    ['a tab', (key: string) => `Bearer\t${key}`],
    ['the same value twice', (key: string) => [`Bearer ${key}`, `Bearer ${key}`]],
    ['an empty one beside it', (key: string) => ['', `Bearer ${key}`]],
  ])('is accepted with a valid key and %s', async (_what, write) => {
    const headers = { authorization: write(await ann()) } as Record<string, string>;
    expect((await list(headers)).status).toBe(200);
  });

  it.each([
    ['something behind it', (key: string) => `Bearer ${key} x`],
    ['a comma behind it', (key: string) => `Bearer ${key}, Bearer ${key}`],
    ['quotes', (key: string) => `Bearer "${key}"`],
    ['another key beside it', (key: string) => [`Bearer ${key}`, 'Bearer nsk_other']],
    ['another scheme beside it', (key: string) => [`Bearer ${key}`, 'Basic abc']],
    ['letters of no alphabet', (key: string) => `Bearer ${key}\xff`],
  ])('is refused with a valid key and %s', async (_what, write) => {
    const headers = { authorization: write(await ann()) } as Record<string, string>;
    const answer = await list(headers);
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(refusal('invalid_api_key'));
  });
});

it.each(['日本', 'Zoë & Co, Ltd', 'x'.repeat(256)])(
  'names the tenant %s in the answer',
  async (tenant) => {
    const { headers, status } = await list(bearer((await make(tenant)).key));
    expect(status).toBe(200);
    expect(Buffer.from(headers['openai-organization'] ?? '', 'latin1').toString()).toBe(tenant);
  },
);

it('refuses an unknown, changed, revoked or expired key with the same message', async () => {
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

it('accepts a key until it expires or is revoked', async () => {
  const { key, record } = await make('ann', NOW_SEC + 60);
  api.clock.nowMs += 59_000;
  expect((await list(bearer(key))).status).toBe(200);
  api.clock.nowMs += 1_000;
  expect((await list(bearer(key))).status).toBe(401);
  api.clock.nowMs -= 30_000;
  expect(await keys.revoke(record.id, NOW_SEC)).toBe(NOW_SEC);
  expect(await keys.revoke(record.id, NOW_SEC + 9)).toBe(NOW_SEC);
  expect(await keys.revoke('none', NOW_SEC)).toBeNull();
  expect((await list(bearer(key))).status).toBe(401);
});

it('stores the last use of a key to the minute, and never the key', async () => {
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

it.each(operations([]).map(({ method, path }) => [method.toUpperCase(), path]))(
  'answers 401 without a key: %s %s',
  async (method, path) => {
    const url = path?.replace(/\{\w+\}/, 'batch_x') ?? '';
    expect((await api.call({ method: method, url })).status).toBe(401);
  },
);

it('needs no key for /health', async () => {
  expect((await api.call({ method: 'GET', url: '/health' })).status).toBe(200);
});
