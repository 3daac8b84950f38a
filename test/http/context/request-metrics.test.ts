import { openTestServer, type TestServer } from '../../support/http-server';
import { until } from '../../support/until';

let server: TestServer;
beforeAll(async () => (server = await openTestServer()));
afterAll(() => server.close());

it('counts requests by the pattern of their path, never by the path itself', async () => {
  await server.app.inject({ method: 'GET', url: '/v1/items?secret=1' });
  await server.app.inject({ method: 'GET', url: '/nowhere/secret' });
  const text = await server.registry.metrics();
  expect(text).toMatch(
    /http_requests_total\{method="GET",path="\/v1\/items",status="200",process="api"\}/,
  );
  expect(text).toMatch(/http_requests_total\{method="GET",path="unknown",status="404"/);
  expect(text).toContain('http_request_duration_seconds_bucket');
  expect(text).toMatch(/http_requests_in_flight\{[^}]*path="\/v1\/items"[^}]*\} 0/);
  expect(text).not.toContain('secret');
});

it('counts unusual methods together, because each would have time series for every path', async () => {
  for (const method of ['PROPFIND', 'PURGE', 'M-SEARCH'] as never[]) {
    await server.app.inject({ method, url: '/v1/items' });
  }
  const text = await server.registry.metrics();
  const methods = [...text.matchAll(/http_requests_total\{method="([^"]*)"/g)].map(([, m]) => m);
  expect(methods).toContain('other');
  expect(methods).not.toContain('PROPFIND');
});

it('counts a request whose client disconnects as 499', async () => {
  const abort = new AbortController();
  const url = `http://127.0.0.1:${server.port}/v1/wait`;
  const request = fetch(url, { signal: abort.signal }).catch(() => undefined);
  await until(() => server.waiting.length === 1, 5_000, 'the request to run');
  abort.abort();
  await request;
  const counted = /http_requests_total\{method="GET",path="\/v1\/wait",status="499"/;
  await until(async () => counted.test(await server.registry.metrics()), 5_000, 'its count');
});
