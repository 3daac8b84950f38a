/** With `auth.mode: header`, a proxy names the tenant of each request. */
import { openTestServer, type TestServer } from '../../support/http-server';
import { exchange } from '../../support/wire';

let trusting: TestServer;
let strict: TestServer;
let open: TestServer;
beforeAll(async () => {
  trusting = await openTestServer({ auth: { mode: 'header', require_tenant: false } });
  strict = await openTestServer({ auth: { mode: 'header', tenant_header: 'X-Who' } });
  open = await openTestServer();
});
afterAll(() => Promise.all([trusting, strict, open].map((server) => server.close())));

const ENVELOPE = {
  error: { message: expect.any(String), type: 'invalid_request_error', param: null, code: null },
};
const PROXIED = { 'x-maas-username': 'ann' };

const ask = (server: TestServer, headers: Record<string, string> = {}, url = '/v1/items') =>
  server.app.inject({ method: 'GET', url, headers });
const tenantOf = async (server: TestServer, headers: Record<string, string> = {}) =>
  (await ask(server, headers)).headers['openai-organization'];
const get = (headers: string, path = '/v1/items') =>
  exchange(
    trusting.port,
    `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n`,
  );

it('is ignored with auth.mode none', async () => {
  expect(await tenantOf(open, { ...PROXIED, authorization: 'Bearer x' })).toBe('default');
});

it('names the tenant; if the operator allows requests without it, they are of the default one', async () => {
  expect(await tenantOf(trusting, PROXIED)).toBe('ann');
  expect(await tenantOf(trusting, { 'x-maas-username': ' ' })).toBe('default');
  expect(await tenantOf(trusting)).toBe('default');
});

it('must be sent, except to probes', async () => {
  const answer = await ask(strict, PROXIED);
  expect(answer.statusCode).toBe(401);
  expect(answer.json()).toEqual(ENVELOPE);
  expect((await ask(strict, {}, '/health')).statusCode).toBe(200);
  expect(await tenantOf(strict, { 'x-who': 'bob' })).toBe('bob');
});

it('must not be longer than 256 characters', async () => {
  const answer = await ask(strict, { 'x-who': 'x'.repeat(257) });
  expect(answer.statusCode).toBe(400);
});

it('must not be sent twice, even with the same name', async () => {
  for (const second of ['X-MaaS-Username: bob', 'X-MAAS-USERNAME: ann', 'x-maas-username:']) {
    const answer = await get(`x-maas-username: ann\r\n${second}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('The header X-MaaS-Username was sent twice');
    expect(answer).toContain('"type":"invalid_request_error"');
  }
  expect(await get('x-maas-username: ann\r\n')).toMatch(/^HTTP\/1\.1 200 /);
});

it('is answered as UTF-8 in openai-organization, on successes and errors', async () => {
  const name = 'Zoë 日本';
  const bytes = Buffer.from(name).toString('latin1');
  for (const path of ['/v1/items', '/v1/items/none', '/nowhere']) {
    const text = await get(`x-maas-username: ${name}\r\n`, path);
    expect(text).toMatch(/^HTTP/);
    expect(text).toContain(`openai-organization: ${bytes}\r\n`);
  }
});

describe('among more headers than Node keeps by default', () => {
  const filler = (count: number) =>
    Array.from({ length: count }, (_, i) => `x${i % 10}:\r\n`).join('');
  const proxied = 'X-MaaS-Username: ann\r\n';

  it.each([1_025, 2_001, 3_000])('is found after %d others', async (count) => {
    const answer = await get(filler(count) + proxied);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer.toLowerCase()).toContain('openai-organization: ann');
  });

  it.each([1_025, 2_001, 3_000])('is refused if sent twice, %d headers apart', async (count) => {
    const answer = await get(`x-maas-username: bob\r\n${filler(count)}${proxied}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('is never dropped: headers with too many bytes are refused', async () => {
    const answer = await get(filler(20_000) + proxied);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(answer).toContain('"type":"invalid_request_error"');
    expect(answer).toMatch(/x-request-id: req_[0-9a-f]{32}/);
  });
});
