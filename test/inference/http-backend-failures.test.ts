import { gzipSync } from 'node:zlib';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { requestOf, until } from './local-server';
import { backendFor, closeAll, expectFailure, never, onClose, serve } from './backend-fixtures';
import { sendTo } from '../support/promises-of-sending';

afterEach(closeAll);

describe('a request without an answer', () => {
  it('fails with connect if nothing listens', async () => {
    const server = await serve((_, response) => response.end());
    await server.close();
    expectFailure(await sendTo(backendFor(server.url), requestOf(), never), 'connect');
  });

  it('fails with connect if the host name does not exist', async () => {
    const backend = backendFor('http://no-such-host.invalid');
    expectFailure(await sendTo(backend, requestOf(), never), 'connect');
  });

  it('fails with connection if the connection breaks before the answer, and is not retried', async () => {
    const server = await serve((_, __, socket) => socket.destroy());
    expectFailure(await sendTo(backendFor(server.url), requestOf(), never), 'connection');
    expect(server.received).toHaveLength(1);
  });

  it('fails with connection if the connection breaks within the body', async () => {
    const server = await serve((_, response, socket) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => socket.destroy());
    });
    expectFailure(await sendTo(backendFor(server.url), requestOf(), never), 'connection');
  });

  it('fails with connection if the server does not speak HTTP', async () => {
    const server = createServer((socket) => socket.resume().end('hello\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onClose(() => new Promise((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    const outcome = await sendTo(backendFor(`http://127.0.0.1:${port}`), requestOf(), never);
    expectFailure(outcome, 'connection');
  });

  it('times out over headers and body together', async () => {
    const silent = await serve(() => undefined);
    expectFailure(
      await sendTo(backendFor(silent.url, { request_timeout: 100 }), requestOf(), never),
      'timeout',
    );
    const timers: NodeJS.Timeout[] = [];
    const dripping = await serve((_, response) => {
      timers.push(setInterval(() => response.write(' '), 10));
    });
    expectFailure(
      await sendTo(backendFor(dripping.url, { request_timeout: 150 }), requestOf(), never),
      'timeout',
    );
    timers.forEach(clearInterval);
  });

  it('does not time out at once with the longest durations, and refuses 0', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const days = 60 * 86_400_000;
    const outcome = await sendTo(
      backendFor(server.url, { request_timeout: days }),
      requestOf(),
      never,
    );
    expect(outcome.kind).toBe('answer');
    expect(() => backendFor(server.url, { request_timeout: 0 })).toThrow(
      expect.objectContaining({ code: 'config_invalid' }),
    );
  });

  it('is too large by declared length, by received bytes, or after decoding', async () => {
    const closed: string[] = [];
    const server = await serve(({ url }, response, socket) => {
      socket.on('close', () => closed.push(url));
      const body = Buffer.alloc(200_000, 'a');
      if (url === '/declared') response.writeHead(200, { 'content-length': '2000' }).write('x');
      if (url === '/streamed') response.write(body);
      if (url === '/bomb') {
        response.writeHead(200, { 'content-encoding': 'gzip' }).write(gzipSync(body));
      }
    });
    const backend = backendFor(server.url, {}, { maxAnswerBytes: 1_000 });
    for (const path of ['/declared', '/streamed', '/bomb']) {
      expectFailure(await sendTo(backend, requestOf({ path }), never), 'too_large');
    }
    await until(() => closed.length === 3);
    const exact = await serve((_, response) => response.end(Buffer.alloc(1_000, 'a')));
    const outcome = await sendTo(
      backendFor(exact.url, {}, { maxAnswerBytes: 1_000 }),
      requestOf(),
      never,
    );
    expect(outcome.kind).toBe('answer');
  });

  it('ends at once when it is aborted', async () => {
    let disconnected = false;
    const server = await serve((_, response) => {
      response.on('close', () => (disconnected = true));
    });
    const backend = backendFor(server.url);
    const controller = new AbortController();
    const running = sendTo(backend, requestOf(), controller.signal);
    await until(() => server.received.length === 1);
    controller.abort();
    expectFailure(await running, 'aborted');
    await until(() => disconnected);
  });

  it('leaves the connection usable if it is aborted before it is sent', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const backend = backendFor(server.url, {}, { connections: 1 });
    const controller = new AbortController();
    const first = sendTo(backend, requestOf({ requestId: 'first' }), controller.signal);
    const second = sendTo(backend, requestOf({ requestId: 'second' }), never);
    controller.abort();
    expectFailure(await first, 'aborted');
    expect((await second).kind).toBe('answer');
    expect(server.received.map(({ headers }) => headers['x-request-id'])).toEqual(['second']);
  });

  it('sends nothing and keeps the connection if maySend refuses it before the first byte', async () => {
    const server = await serve((_, response) => response.end('{}'));
    const backend = backendFor(server.url, {}, { connections: 1 });
    // There is only one connection, so the second request waits for it.
    const clock = { isOver: false };
    const maySend = (): boolean => !clock.isOver;
    const sends = ['new', 'next'].map((requestId) =>
      sendTo(backend, requestOf({ requestId, maySend }), never),
    );
    clock.isOver = true;
    for (const send of sends) expectFailure(await send, 'unsent');
    clock.isOver = false;
    expect((await sendTo(backend, requestOf({ requestId: 'last', maySend }), never)).kind).toBe(
      'answer',
    );
    clock.isOver = true;
    const reused = sendTo(backend, requestOf({ requestId: 'reused', maySend }), never);
    expectFailure(await reused, 'unsent');
    expect(server.received.map(({ headers }) => headers['x-request-id'])).toEqual(['last']);
    expect(server.connections()).toBe(1);
  });

  it('is settled for each of many requests when one signal aborts them', async () => {
    const server = await serve(() => undefined);
    const backend = backendFor(server.url);
    const controller = new AbortController();
    const sends = Array.from({ length: 30 }, () => sendTo(backend, requestOf(), controller.signal));
    await until(() => server.received.length === 10);
    controller.abort();
    for (const outcome of await Promise.all(sends)) expectFailure(outcome, 'aborted');
  });
});
