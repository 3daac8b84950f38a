/** A server on loopback without authentication refuses every request that a foreign web page can send. */
import { openTestServer, type TestServer } from '../../support/http-server';

let server: TestServer;
beforeAll(async () => (server = await openTestServer()));
afterAll(() => server.close());

const ENVELOPE = {
  error: { message: expect.any(String), type: 'invalid_request_error', param: null, code: null },
};
const FOREIGN = [
  { host: 'rebound.example:8000' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
];

it.each(FOREIGN)('a request of a foreign page is refused on every path: %j', async (headers) => {
  const json = { ...headers, 'content-type': 'application/json' };
  const requests = [
    { method: 'GET' as const, url: '/v1/items', headers },
    { method: 'GET' as const, url: '/health', headers },
    { method: 'GET' as const, url: '/nowhere', headers },
    { method: 'DELETE' as const, url: '/v1/items', headers },
    { method: 'POST' as const, url: '/v1/items', headers: json, payload: '{}' },
    {
      method: 'POST' as const,
      url: '/v1/forms',
      headers: { ...headers, 'content-type': 'multipart/form-data; boundary=x' },
      payload: '--x--\r\n',
    },
  ];
  for (const request of requests) {
    const answer = await server.app.inject(request);
    expect([request.url, answer.statusCode]).toEqual([request.url, 403]);
    expect(answer.json()).toEqual(ENVELOPE);
    expect(answer.headers['x-request-id']).toMatch(/^req_/);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  }
});

it('requests of SDKs and of pages of the same origin are answered', async () => {
  const own = { host: 'localhost:8000', origin: 'http://localhost:8000' };
  for (const headers of [{}, own, { ...own, 'sec-fetch-site': 'same-origin' }]) {
    const answer = await server.app.inject({ method: 'GET', url: '/v1/items', headers });
    expect(answer.statusCode).toBe(200);
  }
});

it('any name and origin is answered if requests name their tenant', async () => {
  const proxied = await openTestServer({ auth: { mode: 'header' } });
  const headers = {
    host: 'batch.example',
    origin: 'https://app.example',
    'x-maas-username': 'ann',
  };
  const answer = await proxied.app.inject({ method: 'GET', url: '/v1/items', headers });
  expect(answer.statusCode).toBe(200);
  await proxied.close();
});
