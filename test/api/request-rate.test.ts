import { openTestApi, post, type TestApi } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({
    auth: { mode: 'header' },
    limits: { maxBatches: 2 },
    config: { limits: { tenant: { requests_per_minute: 5, max_batches: 2 } } },
  });
}, POSTGRES_START_MS);
afterAll(() => api.close());

const list = (tenant: string) =>
  api.call({ method: 'GET', url: '/v1/files', headers: { 'x-maas-username': tenant } });

it('a tenant sees how many requests remain, and is refused until there are more', async () => {
  for (let left = 4; left >= 0; left--) {
    const { status, headers } = await list('ann');
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'x-ratelimit-limit-requests': '5',
      'x-ratelimit-remaining-requests': String(left),
      'x-ratelimit-reset-requests': left === 0 ? '1m0s' : `${(5 - left) * 12}s`,
    });
  }
  const refused = await list('ann');
  expect(refused.status).toBe(429);
  expect(refused.body.error).toEqual({
    message: expect.stringContaining('5 / min. Please try again in 12s'),
    type: 'requests',
    param: null,
    code: 'rate_limit_exceeded',
  });
  expect(refused.headers).toMatchObject({
    'retry-after': '12',
    'x-ratelimit-remaining-requests': '0',
    'openai-organization': 'ann',
  });
  expect(refused.headers['x-should-retry']).toBeUndefined();
  api.clock.nowMs += 12_000;
  expect((await list('ann')).status).toBe(200);
  expect((await list('ann')).status).toBe(429);
});

it('requests are counted per tenant, and probes not at all', async () => {
  for (let i = 0; i < 6; i++) await list('bob');
  expect((await list('bob')).status).toBe(429);
  expect((await list('cleo')).headers['x-ratelimit-remaining-requests']).toBe('4');
  const probe = await api.call({ method: 'GET', url: '/health' });
  expect(probe.status).toBe(200);
  expect(probe.headers['x-ratelimit-limit-requests']).toBeUndefined();
});

it('the headers report the nearer limit if open batches are limited too', async () => {
  const create = () =>
    api.call(post('/v1/batches', { input_file_id: 7 }, { 'x-maas-username': 'dan' }));
  const limitOf = async () => (await create()).headers['x-ratelimit-limit-requests'];
  expect(await limitOf()).toBe('2');
  await list('dan');
  await list('dan');
  expect(await limitOf()).toBe('5');
});

it('nothing is limited without the setting', async () => {
  const free = await openTestApi();
  const { headers } = await free.call({ method: 'GET', url: '/v1/files' });
  expect(headers['x-ratelimit-limit-requests']).toBeUndefined();
  await free.close();
});
