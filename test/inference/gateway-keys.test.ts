import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createHttpBackend } from '../../inference/http-backend';
import { createRegistry, type Registry } from '../../inference/registry';
import { createHeaderBuilder, type HeadedRequest } from '../../inference/request-headers';
import { readGatewaySecrets } from '../../inference/secrets';
import { configSchema } from '../../platform/config-schema';
import { gatewayOf, requestOf } from './local-server';
import { sendTo } from '../support/promises-of-sending';

const never = new AbortController().signal;
const OWN_KEY = 'own-s3cret-0123456789';

let folder: string;
const closers: (() => Promise<void> | void)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gateway-keys-'));
  closers.push(() => rmSync(folder, { recursive: true }));
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function keyFile(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** A server that keeps the raw bytes of each request. */
async function startWire(): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      requests.push(bytes.toString('latin1'));
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests };
}

/** Name and value of each header as it was sent, including repetitions. */
function rawHeaders(request: string): string[] {
  const head = request.slice(0, request.indexOf('\r\n\r\n'));
  return head.split('\r\n').slice(1);
}

function namesOf(request: string): string[] {
  return rawHeaders(request).map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
}

describe('the key of a gateway', () => {
  it.each(['authorization', 'Authorization', 'AUTHORIZATION'])(
    'is not sent if the caller passes its own %s',
    async (name) => {
      const wire = await startWire();
      const gateway = gatewayOf(wire.url, { api_key_file: keyFile('key', OWN_KEY) });
      const backend = createHttpBackend(gateway, {
        secrets: readGatewaySecrets(gateway, folder),
        connections: 1,
        maxAnswerBytes: 1_000,
      });
      closers.push(() => backend.close());
      await sendTo(backend, requestOf({ headers: { [name]: 'Bearer of-the-user' } }), never);
      const [request = ''] = wire.requests;
      expect(rawHeaders(request).filter((line) => /^authorization:/i.test(line))).toEqual([
        'authorization: Bearer of-the-user',
      ]);
      expect(request).not.toContain(OWN_KEY);
    },
  );

  it('is sent once if the caller passes no authorization', async () => {
    const wire = await startWire();
    const gateway = gatewayOf(wire.url, { api_key_file: keyFile('key', OWN_KEY) });
    const backend = createHttpBackend(gateway, {
      secrets: readGatewaySecrets(gateway, folder),
      connections: 1,
      maxAnswerBytes: 1_000,
    });
    closers.push(() => backend.close());
    await sendTo(backend, requestOf({ headers: { 'x-team': 'blue' } }), never);
    const [request = ''] = wire.requests;
    expect(request.split(OWN_KEY)).toHaveLength(2);
    expect(namesOf(request).filter((name) => name === 'authorization')).toHaveLength(1);
  });

  it('is not sent for another model at the same address', async () => {
    const wire = await startWire();
    const settings = {
      url: wire.url,
      request_timeout: '5s',
      max_retries: 0,
      initial_backoff: '1s',
      max_backoff: '1s',
    };
    const config = configSchema.parse({
      model_gateways: {
        a: { ...settings, api_key_file: keyFile('a', 'key-of-a') },
        b: { ...settings, api_key_file: keyFile('b', 'key-of-b') },
        c: settings,
      },
    });
    const registry: Registry = createRegistry(config);
    closers.push(() => registry.close());
    for (const model of ['a', 'b', 'c', 'a']) {
      await sendTo(registry.route(model)!.backend, requestOf(), never);
    }
    const keys = wire.requests.map((request) => /^authorization: (.*)$/im.exec(request)?.[1]);
    expect(keys).toEqual(['Bearer key-of-a', 'Bearer key-of-b', undefined, 'Bearer key-of-a']);
  });

  it.each([
    ['holds a blank', 'two words'],
    ['holds a line end', 'first\nsecond'],
    ['is not ASCII', 'schlüssel'],
  ])('does not appear in the error if it %s', (_what, content) => {
    const gateway = gatewayOf('http://127.0.0.1:1', { api_key_file: keyFile('key', content) });
    let message = '';
    try {
      readGatewaySecrets(gateway, folder);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain('must contain exactly one key');
    for (const part of content.split(/\s/)) expect(message).not.toContain(part);
  });
});

describe('headers of a request', () => {
  const build = createHeaderBuilder({ authorization: null, objective: 'batch' });
  const headersOf = (request: HeadedRequest, nowMs: number): string[] => {
    const { own, common } = build(request, nowMs);
    return [...own, ...common];
  };

  it.each([
    'Content-Length',
    'HOST',
    'Transfer-Encoding',
    'X-Request-Id',
    'x-slo-ttft-ms',
    'X-Gateway-Inference-Objective',
    'Proxy-Authorization',
  ])('that are reserved are never taken from the caller, in any spelling: %s', (name) => {
    const flat = headersOf(requestOf({ headers: { [name]: 'theirs' } }), 0);
    expect(flat).not.toContain('theirs');
    const names = flat.filter((_text, i) => i % 2 === 0);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(['a\r\nx-injected: 1', 'a\nb', 'a\0b', 'π'])(
    'are omitted if HTTP cannot carry their value: %j',
    (value) => {
      expect(headersOf(requestOf({ headers: { 'x-team': value } }), 0)).not.toContain('x-team');
    },
  );
});

describe('headers that requests have in common', () => {
  const build = createHeaderBuilder({ authorization: 'Bearer key', objective: undefined });
  const json = ['content-type', 'application/json', 'accept', 'application/json'];

  it('are one list for all requests with the same given headers', () => {
    const given = { 'x-team': 'a' };
    const first = build(requestOf({ headers: given, requestId: 'one' }), 0);
    const second = build(requestOf({ headers: given, requestId: 'two' }), 0);
    expect(second.common).toBe(first.common);
    expect(first.common).toEqual([...json, 'x-team', 'a', 'authorization', 'Bearer key']);
    expect(second.own.slice(0, 2)).toEqual(['x-request-id', 'two']);
  });

  it('are others for other given headers, even if an earlier object had the same', () => {
    const { common } = build(requestOf({ headers: { authorization: 'Bearer theirs' } }), 0);
    expect(common).toEqual([...json, 'authorization', 'Bearer theirs']);
    const after = build(requestOf({ headers: {} }), 0);
    expect(after.common).toEqual([...json, 'authorization', 'Bearer key']);
  });

  it('do not contain the type of a form, which each request has for itself', () => {
    const contentType = 'multipart/form-data; boundary=b';
    const body = { bytes: 7, contentType, open: () => Readable.from([]) };
    const { own, common } = build(requestOf({ body, accept: 'text/plain' }), 0);
    expect(common).toEqual(['authorization', 'Bearer key']);
    expect(own.slice(4)).toEqual([
      ...['content-type', contentType, 'accept', 'text/plain', 'content-length', '7'],
    ]);
  });
});

describe('a server that accepts connections and never answers the TLS handshake', () => {
  it('has received nothing, so the failure is `connect`', async () => {
    const server = createServer((socket) => void socket.on('error', () => undefined));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const gateway = gatewayOf(`https://127.0.0.1:${port}`, { request_timeout: 100 });
    const backend = createHttpBackend(gateway, {
      secrets: { authorization: null, tls: {} },
      connections: 1,
      maxAnswerBytes: 1_000,
    });
    const sockets = new Set<{ destroy(): void }>();
    server.on('connection', (socket) => sockets.add(socket));
    expect(await sendTo(backend, requestOf(), never)).toMatchObject({
      kind: 'failure',
      reason: 'connect',
    });
    for (const socket of sockets) socket.destroy();
    await backend.close();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
});
