import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { BOUNDARY, batchForm, formBytes, LINE, openTestApi, type TestApi } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';
import { answersIn, exchange, expectEnvelope } from '../support/wire';

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

async function filesOf(tenant?: string): Promise<unknown[]> {
  const headers = tenant === undefined ? {} : { 'x-maas-username': tenant };
  const response = await fetch(url('/v1/files'), { headers });
  return ((await response.json()) as { data: unknown[] }).data;
}

it('stores an upload in chunks without a length, and returns the same bytes', async () => {
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

it('keeps nothing of an upload whose connection ends early', async () => {
  const before = await api.keys();
  const form = formBytes(batchForm(LINE.repeat(5_000)));
  const head = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${FORM_TYPE}\r\n`;
  const length = `content-length: ${form.length}\r\n\r\n`;
  const cut = form.subarray(0, form.length / 2);
  await exchange(port, Buffer.concat([Buffer.from(head + length), cut]), { end: true });
  await until(
    async () => /path="\/v1\/files",status="4\d\d/.test(await api.registry.metrics()),
    5_000,
    'the request to end',
  );
  expect(await api.keys()).toEqual(before);
  expect(await filesOf('nobody')).toEqual([]);
});

it('answers 400 to a form that ends early, and keeps the connection', async () => {
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
])(
  'answers a file that is far too long, %s, and reads it to its end',
  async (_name, status, extra) => {
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
        // A connection that is reset fails here, and SDKs would send the whole file again.
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
  },
);

it('refuses two idempotency keys in one request', async () => {
  const head =
    'POST /v1/batches HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n';
  const keys = 'idempotency-key: a\r\nIdempotency-Key: b\r\n';
  const [answer] = answersIn(await exchange(port, `${head}${keys}\r\n{}`));
  expect(answer?.status).toBe(400);
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error: { param: 'Idempotency-Key' } });
});

const UPLOAD = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=${BOUNDARY}\r\n`;

it('refuses a file that is too long before it is sent, if the client asks first', async () => {
  const ask = `${UPLOAD}expect: 100-continue\r\ncontent-length: 90000000\r\n\r\n`;
  const answers = answersIn(await exchange(port, ask));
  expect(answers.map(({ status }) => status)).toEqual([413]);
});

it('makes no file of a complete form whose request is cut after it', async () => {
  const form = formBytes(batchForm());
  const before = await api.keys();
  const files = await filesOf();
  const head = Buffer.from(`${UPLOAD}content-length: ${form.length + 1}\r\n\r\n`);
  const [answer] = answersIn(await exchange(port, Buffer.concat([head, form]), { end: true }));
  expectEnvelope(answer, 400);
  await until(async () => (await api.keys()).length === before.length, 5_000, 'its object to go');
  expect(await filesOf()).toEqual(files);
});

it('stops reading a form that has no end', async () => {
  const chunk = Buffer.alloc(100_000, 'x');
  const piece = Buffer.concat([
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from('\r\n'),
  ]);
  const body = Buffer.concat([
    ...Array.from({ length: 60 }, () => piece),
    Buffer.from('0\r\n\r\n'),
  ]);
  const head = Buffer.from(`${UPLOAD}transfer-encoding: chunked\r\nconnection: close\r\n\r\n`);
  const [answer] = answersIn(await exchange(port, Buffer.concat([head, body])));
  expectEnvelope(answer, 400);
  expect(answer?.body).toContain('larger than the limit');
});
