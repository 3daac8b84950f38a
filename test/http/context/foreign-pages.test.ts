/** What a web page can send to an API on loopback without authentication: none of it is answered. */
import { batchForm, openTestApi, post, type TestApi, upload } from '../../support/api';
import { POSTGRES_START_MS } from '../../support/postgres';

let api: TestApi;
beforeAll(async () => (api = await openTestApi()), POSTGRES_START_MS);
afterAll(() => api.close());

const ENVELOPE = {
  error: { message: expect.any(String), type: 'invalid_request_error', param: null, code: null },
};
const FOREIGN = [
  { host: 'rebound.example:8000' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
];

it.each(FOREIGN)('refuses a page on every path: %j', async (headers) => {
  const requests = [
    { method: 'GET' as const, url: '/v1/files', headers },
    { method: 'GET' as const, url: '/health', headers },
    { method: 'GET' as const, url: '/openapi.json', headers },
    { method: 'GET' as const, url: '/nowhere', headers },
    { method: 'DELETE' as const, url: '/v1/files/file-x', headers },
    { method: 'POST' as const, url: `/v1/batches/batch_${'0'.repeat(32)}/cancel`, headers },
    post('/v1/batches', { input_file_id: 'file-x' }, headers),
    upload(batchForm(), headers),
  ];
  for (const request of requests) {
    const answer = await api.app.inject(request);
    expect([request.url, answer.statusCode]).toEqual([request.url, 403]);
    expect(answer.json()).toEqual(ENVELOPE);
    expect(answer.headers['x-request-id']).toMatch(/^req_/);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  }
  expect(await api.keys()).toEqual([]);
});

it('answers what the SDKs and our own pages send', async () => {
  const own = { host: 'localhost:8000', origin: 'http://localhost:8000' };
  for (const headers of [{}, own, { ...own, 'sec-fetch-site': 'same-origin' }]) {
    expect((await api.call({ method: 'GET', url: '/v1/files', headers })).status).toBe(200);
  }
});

it('asks for no name of its own where a tenant or a key is asked for', async () => {
  const proxied = await openTestApi({ auth: { mode: 'header' } });
  const headers = {
    host: 'batch.example',
    origin: 'https://app.example',
    'x-maas-username': 'ann',
  };
  expect((await proxied.call({ method: 'GET', url: '/v1/files', headers })).status).toBe(200);
  await proxied.close();
});
