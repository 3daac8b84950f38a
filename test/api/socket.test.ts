import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { BOUNDARY, batchForm, formBytes, LINE, openTestApi, type TestApi } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';

const MAX_UPLOAD_BYTES = 4_000_000;

let api: TestApi;
let port: number;
beforeAll(async () => {
  api = await openTestApi({
    auth: { mode: 'header', require_tenant: false },
    deps: { maxUploadBytes: MAX_UPLOAD_BYTES },
  });
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = api.app.server.address() as AddressInfo);
}, POSTGRES_START_MS);
afterAll(() => api.close());

const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const url = (path: string) => `http://127.0.0.1:${port}${path}`;

/** Sends bytes as they are, and resolves with all that came back when the other side has closed. */
function raw(bytes: string | Buffer, { end = true } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
    socket.write(bytes);
    if (end) socket.end();
  });
}

async function filesOf(tenant?: string): Promise<unknown[]> {
  const headers = tenant === undefined ? {} : { 'x-maas-username': tenant };
  const response = await fetch(url('/v1/files'), { headers });
  return ((await response.json()) as { data: unknown[] }).data;
}

it('takes an upload in chunks without a length, and gives the same bytes back', async () => {
  const content = Buffer.from(LINE.repeat(20_000));
  const form = formBytes(batchForm(content));
  async function* chunks() {
    for (let at = 0; at < form.length; at += 10_007) yield form.subarray(at, at + 10_007);
  }
  const response = await fetch(url('/v1/files'), {
    method: 'POST',
    headers: { 'content-type': FORM_TYPE },
    body: chunks(),
    duplex: 'half',
  });
  expect(response.status).toBe(200);
  const file = (await response.json()) as { id: string; bytes: number };
  expect(file.bytes).toBe(content.length);
  const download = await fetch(url(`/v1/files/${file.id}/content`));
  const bytes = Buffer.from(await download.arrayBuffer());
  const hash = (data: Buffer) => createHash('sha256').update(data).digest('hex');
  expect(hash(bytes)).toBe(hash(content));
});

it('keeps nothing of an upload that was cut', async () => {
  const before = await api.keys();
  const form = formBytes(batchForm(LINE.repeat(5_000)));
  const head = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${FORM_TYPE}\r\n`;
  const length = `content-length: ${form.length}\r\n\r\n`;
  const cut = form.subarray(0, form.length / 2);
  await raw(Buffer.concat([Buffer.from(head + length), cut]));
  await until(
    async () => /path="\/v1\/files",status="4\d\d/.test(await api.registry.metrics()),
    5_000,
    'the request to end',
  );
  expect(await api.keys()).toEqual(before);
  expect(await filesOf('nobody')).toEqual([]);
});

it('answers 400 to a form that ends early, on a connection that goes on', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const form = formBytes(batchForm());
  const sockets = new Set<unknown>();
  const send = (body: Buffer) =>
    new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      const headers = { 'content-type': FORM_TYPE, 'content-length': body.length };
      const options = { method: 'POST', agent, headers };
      const request = http.request(url('/v1/files'), options, (response) => {
        sockets.add(response.socket);
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode, body: text }));
      });
      request.on('error', reject);
      request.end(body);
    });
  const refused = await send(form.subarray(0, form.length - 10));
  expect(refused.status).toBe(400);
  expect(JSON.parse(refused.body)).toMatchObject({ error: { type: 'invalid_request_error' } });
  expect((await send(form)).status).toBe(200);
  expect(sockets.size).toBe(1);
  agent.destroy();
});

it.each([
  ['of a declared length', 413, (size: number) => ({ 'content-length': size })],
  ['of no declared length', 400, () => ({ 'transfer-encoding': 'chunked' })],
])('answers a file that is far too long, %s, and hears it out', async (_name, status, extra) => {
  const before = await api.keys();
  const form = formBytes(batchForm(Buffer.alloc(8 * MAX_UPLOAD_BYTES, 0x20)));
  let sent: Promise<unknown> | undefined;
  const answer = await new Promise<{ status: number | undefined; body: string }>(
    (resolve, reject) => {
      const headers = { 'content-type': FORM_TYPE, ...extra(form.length) };
      const request = http.request(url('/v1/files'), { method: 'POST', headers }, (response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => (body += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode, body }));
      });
      // A reset would come here before the answer is seen, and SDKs would send it all again.
      request.on('error', reject);
      request.end(form);
      sent = once(request, 'finish');
    },
  );
  await sent;
  expect(answer.status).toBe(status);
  expect(JSON.parse(answer.body)).toMatchObject({
    error: { type: 'invalid_request_error', param: null, code: null },
  });
  expect(await api.keys()).toEqual(before);
});

it('refuses a request that names its tenant twice, even if both names are the same', async () => {
  const ask = (headers: string) =>
    raw(`GET /v1/files HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n`, {
      end: false,
    });
  for (const second of ['X-MaaS-Username: bob', 'X-MAAS-USERNAME: ann', 'x-maas-username:']) {
    const answer = await ask(`x-maas-username: ann\r\n${second}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('The header X-MaaS-Username was sent twice');
    expect(answer).toContain('"type":"invalid_request_error"');
  }
  const once = await ask('x-maas-username: ann\r\n');
  expect(once).toMatch(/^HTTP\/1\.1 200 /);
});

it('writes the name of a tenant as its UTF-8, on every kind of answer', async () => {
  const name = 'Zoë 日本';
  const bytes = Buffer.from(name).toString('latin1');
  const asked = `x-maas-username: ${name}\r\nconnection: close\r\n\r\n`;
  for (const path of ['/v1/files', '/v1/files/file-none', '/nowhere']) {
    const text = await raw(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n${asked}`, { end: false });
    expect(text).toMatch(/^HTTP/);
    expect(text).toContain(`openai-organization: ${bytes}\r\n`);
  }
});

describe('with more headers than Node keeps by default', () => {
  const filler = (count: number) =>
    Array.from({ length: count }, (_, i) => `x${i % 10}:\r\n`).join('');
  const ask = (headers: string) =>
    raw(`GET /v1/files HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n`, {
      end: false,
    });
  const proxied = 'X-MaaS-Username: ann\r\n';

  it.each([1_025, 2_001, 3_000])('reads the tenant behind %d others', async (count) => {
    const answer = await ask(filler(count) + proxied);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer.toLowerCase()).toContain('openai-organization: ann');
  });

  it.each([1_025, 2_001, 3_000])('sees the second tenant behind %d others', async (count) => {
    const answer = await ask(`x-maas-username: bob\r\n${filler(count)}${proxied}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('refuses more bytes than it reads, and drops none', async () => {
    const answer = await ask(filler(20_000) + proxied);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(answer).toContain('"type":"invalid_request_error"');
    expect(answer).toMatch(/x-request-id: req_[0-9a-f]{32}/);
  });
});

it('finishes what runs when it is closed, and then accepts nothing', async () => {
  const closing = await openTestApi();
  await closing.app.listen({ host: '127.0.0.1', port: 0 });
  const { port: other } = closing.app.server.address() as AddressInfo;
  const form = formBytes(batchForm());
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  async function* slowly() {
    yield form.subarray(0, 100);
    await released;
    yield form.subarray(100);
  }
  const running = fetch(`http://127.0.0.1:${other}/v1/files`, {
    method: 'POST',
    headers: { 'content-type': FORM_TYPE },
    body: slowly(),
    duplex: 'half',
  });
  const inFlight = /http_requests_in_flight\{[^}]*path="\/v1\/files"[^}]*\} 1/;
  await until(
    async () => inFlight.test(await closing.registry.metrics()),
    5_000,
    'the upload to be running',
  );
  const closed = closing.close();
  await until(
    () =>
      fetch(`http://127.0.0.1:${other}/health`).then(
        () => false,
        () => true,
      ),
    5_000,
    'the port to be closed',
  );
  release();
  const response = await running;
  expect(response.status).toBe(200);
  await response.json();
  await closed;
});
