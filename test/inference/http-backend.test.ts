import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { requestOf, until } from './local-server';
import { backendFor, closeAll, expectFailure, never, serve } from './backend-fixtures';
import { sendTo } from '../support/promises-of-sending';

afterEach(closeAll);

describe('a request to a model server', () => {
  it('is the exact body, sent by POST to base path and endpoint', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const body = Buffer.from('{ "model":"m", "n": 1.0e0, "x":"\\u00e9é" }');
    for (const base of ['/prefix/', '/prefix', '']) {
      await sendTo(backendFor(server.url + base), requestOf({ body }), never);
    }
    expect(server.received.map(({ method, url }) => [method, url])).toEqual([
      ['POST', '/prefix/v1/chat/completions'],
      ['POST', '/prefix/v1/chat/completions'],
      ['POST', '/v1/chat/completions'],
    ]);
    for (const received of server.received) expect(received.body.equals(body)).toBe(true);
  });

  it('has /v1 once in its path, whether or not the base URL ends in it', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const paths = ['/v1/chat/completions', '/rerank'];
    for (const base of ['/v1', '/v1/', '/a/v1/', '/av1']) {
      for (const path of paths)
        await sendTo(backendFor(server.url + base), requestOf({ path }), never);
    }
    expect(server.received.map(({ url }) => url)).toEqual([
      '/v1/chat/completions',
      '/v1/rerank',
      '/v1/chat/completions',
      '/v1/rerank',
      '/a/v1/chat/completions',
      '/a/v1/rerank',
      '/av1/v1/chat/completions',
      '/av1/rerank',
    ]);
  });

  it('has the documented headers and those that the caller passes through', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const backend = backendFor(
      server.url,
      { inference_objective: 'batch' },
      { secrets: { authorization: 'Bearer key', tls: {} }, now: () => 1_000.25 },
    );
    const headers = {
      'x-gateway-inference-fairness-id': 'tenant',
      'x-team': 'blue',
      'content-length': '999',
      connection: 'close',
      'x-bad': 'a\nb',
    };
    await sendTo(
      backend,
      requestOf({ headers, deadlineMs: 61_000.75, requestId: 'line-7' }),
      never,
    );
    expect(server.received[0]!.headers).toEqual({
      host: `127.0.0.1:${server.port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      accept: 'application/json',
      'content-length': '13',
      authorization: 'Bearer key',
      'x-request-id': 'line-7',
      'x-slo-ttft-ms': '60000',
      'x-gateway-inference-objective': 'batch',
      'x-gateway-inference-fairness-id': 'tenant',
      'x-team': 'blue',
    });
  });

  it('prefers a passed-through authorization to the key, and never sends a negative time left', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const backend = backendFor(
      server.url,
      {},
      { secrets: { authorization: 'Bearer key', tls: {} } },
    );
    await sendTo(
      backend,
      requestOf({ headers: { authorization: 'Bearer user' }, deadlineMs: 5 }),
      never,
    );
    expect(server.received[0]!.headers).toMatchObject({
      authorization: 'Bearer user',
      'x-slo-ttft-ms': '0',
    });
  });

  it('reuses connections and opens no more than allowed', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const backend = backendFor(server.url, {}, { connections: 3 });
    const sends = Array.from({ length: 50 }, () => sendTo(backend, requestOf(), never));
    for (const outcome of await Promise.all(sends)) expect(outcome.kind).toBe('answer');
    expect(server.connections()).toBeLessThanOrEqual(3);
  });
});

describe('the answer of a model server', () => {
  it('is complete, with its status and the relevant header fields', async () => {
    const server = await serve((_, response) => {
      response.writeHead(429, {
        'Retry-After': '7',
        'X-LLM-D-Request-Dropped-Reason': 'Rejected-TTL-Expired',
        'X-Request-Id': 'abc',
      });
      response.write('{"error":');
      response.end('{}}');
    });
    expect(await sendTo(backendFor(server.url), requestOf(), never)).toEqual({
      kind: 'answer',
      status: 429,
      body: Buffer.from('{"error":{}}'),
      retryAfter: '7',
      droppedReason: 'rejected-ttl-expired',
      dropped: null,
      isFinal: false,
      contentType: null,
      queueMs: null,
      requestId: 'abc',
    });
  });

  it('says how long it waited in the queue of a gateway, in any of several fields', async () => {
    const server = await serve((_, response) => {
      response.setHeader('server-timing', ['db;dur=2', 'queue;dur=41.5']).end('{}');
    });
    const outcome = await sendTo(backendFor(server.url), requestOf(), never);
    expect(outcome).toMatchObject({ status: 200, queueMs: 41.5 });
  });

  it('may be empty', async () => {
    const server = await serve((_, response) => response.writeHead(204).end());
    const outcome = await sendTo(backendFor(server.url), requestOf(), never);
    expect(outcome).toMatchObject({ status: 204, body: Buffer.alloc(0), retryAfter: null });
  });

  it('may be a redirect, which is not followed', async () => {
    const server = await serve((_, response) => response.writeHead(307, { location: '/x' }).end());
    expect(await sendTo(backendFor(server.url), requestOf(), never)).toMatchObject({ status: 307 });
    expect(server.received).toHaveLength(1);
  });

  it('is the final one after informational responses', async () => {
    const server = await serve((_, response) => {
      response.writeProcessing();
      response.end('{"ok":1}');
    });
    const outcome = await sendTo(backendFor(server.url), requestOf(), never);
    expect(outcome).toMatchObject({ status: 200, body: Buffer.from('{"ok":1}') });
  });

  const plain = Buffer.from(JSON.stringify({ text: 'héllo '.repeat(20_000) }));
  it.each([
    ['gzip', gzipSync(plain)],
    ['x-gzip', gzipSync(plain)],
    ['deflate', deflateSync(plain)],
    ['deflate', deflateRawSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['gzip, br', brotliCompressSync(gzipSync(plain))],
    ['identity', plain],
    ['unheard-of', plain],
  ])('with content coding %s is decoded', async (coding, body) => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': coding });
      response.end(body);
    });
    const outcome = await sendTo(backendFor(server.url), requestOf(), never);
    expect(outcome.kind === 'answer' && outcome.body.equals(plain)).toBe(true);
  });

  it('is too large if an intermediate coding unpacks to too much', async () => {
    // Empty gzip members: a megabyte of them unpacks to nothing.
    const empty = gzipSync('');
    const between = Buffer.concat([
      ...Array.from({ length: Math.ceil(2_000_000 / empty.length) }, () => empty),
      gzipSync('{}'),
    ]);
    const send = async (bytes: Buffer) => {
      const server = await serve((_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip, gzip, br' });
        response.end(brotliCompressSync(gzipSync(bytes)));
      });
      return sendTo(backendFor(server.url), requestOf(), never);
    };
    expectFailure(await send(between), 'too_large');
    const last = between.subarray(-20_000 * empty.length - gzipSync('{}').length);
    expect(await send(last)).toMatchObject({ status: 200, body: Buffer.from('{}') });
  });

  it('with a coding but without bytes is empty', async () => {
    const server = await serve((_, response) =>
      response.writeHead(204, { 'content-encoding': 'gzip' }).end(),
    );
    expect(await sendTo(backendFor(server.url), requestOf(), never)).toMatchObject({ status: 204 });
  });

  it('with a truncated coding is a broken connection', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync(plain).subarray(0, 40));
    });
    expectFailure(await sendTo(backendFor(server.url), requestOf(), never), 'connection');
  });

  it('is reported piece by piece, and reading waits for the listener', async () => {
    const server = await serve((_, response) => response.end(Buffer.alloc(900_000, 'x')));
    let told = 0;
    let waiting: (() => void) | null = null;
    const onBytes = (bytes: number): Promise<void> => {
      told += bytes;
      return new Promise((resolve) => (waiting = resolve));
    };
    const answer = sendTo(backendFor(server.url), requestOf({ onBytes }), never);
    await until(() => waiting !== null);
    expect(told).toBeLessThan(900_000);
    const pump = setInterval(() => waiting?.(), 1);
    const outcome = await answer;
    clearInterval(pump);
    expect(outcome.kind === 'answer' && outcome.body.length).toBe(900_000);
    expect(told).toBe(900_000);
  });
});

describe('closing a backend', () => {
  it('waits for requests in flight and sends nothing more', async () => {
    const replies: (() => void)[] = [];
    const server = await serve((_, response) => replies.push(() => response.end('{}')));
    const backend = backendFor(server.url);
    const running = sendTo(backend, requestOf(), never);
    await until(() => replies.length === 1);
    let closed = false;
    const closing = backend.close().then(() => (closed = true));
    expectFailure(await sendTo(backend, requestOf(), never), 'aborted');
    expect(closed).toBe(false);
    replies[0]!();
    expect((await running).kind).toBe('answer');
    await closing;
    expect(server.received).toHaveLength(1);
  });
});
