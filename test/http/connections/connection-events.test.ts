import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import { openTestServer, type TestServer } from '../../support/http-server';
import { movedSeries } from '../../support/metric-values';
import { until } from '../../support/until';
import { answersIn, exchange, expectEnvelope } from '../../support/wire';

let server: TestServer;
let port: number;
beforeAll(async () => {
  server = await openTestServer();
  ({ port } = server);
});
afterAll(() => server.close());

const HOST = 'host: localhost\r\n';
const CLOSE = 'connection: close\r\n';
const GET = `GET /v1/items?limit=1 HTTP/1.1\r\n${HOST}`;
const POST = `POST /v1/items HTTP/1.1\r\n${HOST}`;
const TYPE = 'content-type: application/json\r\n';

describe('bytes that are not a valid request', () => {
  it.each([
    ['nonsense', 'NONSENSE\r\n\r\n', 400],
    ['an unknown method', `FOO /v1/items HTTP/1.1\r\n${HOST}\r\n`, 400],
    ['an unknown version of HTTP', `GET / HTTP/1.7\r\n${HOST}\r\n`, 400],
    ['the first bytes of TLS', Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0]), 400],
    ['a header without a colon', `${GET}nonsense\r\n\r\n`, 400],
    ['two different lengths', `${POST}Content-Length: 1\r\ncontent-length: 2\r\n\r\n`, 400],
    ['a negative length', `${POST}Content-Length: -1\r\n\r\n`, 400],
    ['headers that are too large', `${GET}x: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['a URL that is too long', `GET /${'a'.repeat(20_000)} HTTP/1.1\r\n${HOST}\r\n`, 414],
    ['a URL of a megabyte', `GET /${'a'.repeat(1_000_000)} HTTP/1.1\r\n${HOST}\r\n`, 414],
    ['a request for a tunnel', 'CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n', 405],
  ] as [string, string | Buffer, number][])(
    'are answered in the error envelope: %s',
    async (_what, bytes, status) => {
      const [answer, ...more] = answersIn(await exchange(port, bytes));
      expectEnvelope(answer, status);
      expect(answer?.headers['connection']).toBe('close');
      expect(more).toEqual([]);
    },
  );

  it('are counted by what is wrong with them', async () => {
    const counts = async (): Promise<Record<string, number>> =>
      movedSeries(server.registry, 'http_connections_closed_total');
    const before = await counts();
    await exchange(port, 'NONSENSE\r\n\r\n');
    await exchange(port, `${GET}x: ${'a'.repeat(20_000)}\r\n\r\n`);
    const slow = await openTestServer({ limits: { headerTimeoutMs: 100 } });
    const [answer] = answersIn(await exchange(slow.port, 'GET / HTTP/1.1\r\nhost: lo'));
    const slowly = await movedSeries(slow.registry, 'http_connections_closed_total');
    await slow.close();
    expectEnvelope(answer, 408);
    const series = (reason: string): string => `http_connections_closed_total{reason="${reason}"}`;
    const after = await counts();
    for (const reason of ['invalid', 'large_headers']) {
      expect((after[series(reason)] ?? 0) - (before[series(reason)] ?? 0)).toBe(1);
    }
    expect(slowly).toEqual({ [series('slow_headers')]: 1 });
  });

  it('are answered after the requests before them', async () => {
    const text = await exchange(
      port,
      `${GET}\r\nGET /nowhere HTTP/1.1\r\n${HOST}\r\nNONSENSE\r\n\r\n`,
    );
    const answers = answersIn(text);
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 400]);
    expectEnvelope(answers[2], 400);
  });

  it('are answered once, however many arrive while the request before them runs', async () => {
    const { app, waiting } = server;
    let errors = 0;
    const onError = (): void => void errors++;
    app.server.on('clientError', onError);
    const served = once(app.server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    const socket = net.connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.write(`GET /v1/wait HTTP/1.1\r\n${HOST}\r\n`);
    const [, response] = await served;
    await until(() => waiting.length === 1, 5_000, 'the handler to run');
    const listeners = response.listenerCount('close');
    for (let sent = 1; sent <= 5; sent++) {
      socket.write('NONSENSE\r\n\r\n');
      await until(() => errors === sent, 5_000, 'the nonsense to be noticed');
    }
    expect(response.listenerCount('close')).toBe(listeners + 1);
    app.server.off('clientError', onError);
    waiting.splice(0).forEach(({ raw }) => raw.end('{}'));
    await once(socket, 'close');
    expect(text).toMatch(/^HTTP\/1\.1 200 [^]*HTTP\/1\.1 400 /);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(2);
  });
});

it.each([
  ['no Host', `GET /v1/items HTTP/1.1\r\n${CLOSE}\r\n`, 400],
  ['two Hosts', `GET /v1/items HTTP/1.1\r\nhost: a\r\nhost: b\r\n${CLOSE}\r\n`, 400],
  ['a method of WebDAV', `PROPFIND /v1/items HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, 405],
  [
    'a compressed transfer encoding',
    `${POST}${TYPE}${CLOSE}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    415,
  ],
])('answers a request with %s in the error envelope', async (_what, bytes, status) => {
  expectEnvelope(answersIn(await exchange(port, bytes))[0], status);
});

it('ignores an unknown expectation', async () => {
  const [answer] = answersIn(await exchange(port, `${GET}expect: miracles\r\n${CLOSE}\r\n`));
  expect(answer?.status).toBe(200);
});

it('sends no 100 Continue for a body that is too long', async () => {
  const ask = (length: number) =>
    exchange(
      port,
      `${POST}${TYPE}${CLOSE}expect: 100-continue\r\ncontent-length: ${length}\r\n\r\n`,
      { end: true },
    );
  expect(await ask(90_000_000)).toMatch(/^HTTP\/1\.1 413 /);
  expect(await ask(90)).toMatch(/^HTTP\/1\.1 100 Continue/);
});

it('serves the next request of the connection after a body that was too large', async () => {
  const json = `{"x":"${'a'.repeat(3 * 1024 * 1024)}"}`;
  const head = `${POST}content-length: ${json.length}\r\n\r\n`;
  const text = await exchange(port, `${head}${json}${GET}${CLOSE}\r\n`);
  expect(answersIn(text).map(({ status }) => status)).toEqual([413, 200]);
});

it('refuses JSON over the limit that comes in chunks, and serves the next requests', async () => {
  const head = `${POST}${TYPE}transfer-encoding: chunked\r\n\r\n`;
  const request = (length: number) => {
    const json = `{"x":"${'a'.repeat(length)}"}`;
    const pieces = json.match(/.{1,60000}/gs)!.map((x) => `${x.length.toString(16)}\r\n${x}\r\n`);
    return `${head}${pieces.join('')}0\r\n\r\n`;
  };
  const mebibyte = 1024 * 1024;
  const text = await exchange(
    port,
    `${request(mebibyte)}${request(mebibyte - 100)}${GET}${CLOSE}\r\n`,
  );
  const answers = answersIn(text);
  expect(answers.map(({ status }) => status)).toEqual([413, 200, 200]);
  expectEnvelope(answers[0], 413);
});

describe('when nothing moves on a connection for the idle timeout', () => {
  let idle: TestServer;
  beforeAll(async () => {
    idle = await openTestServer();
    idle.app.server.setTimeout(300);
  });
  afterAll(() => idle.close());

  it('a request whose body has not arrived is answered with 408', async () => {
    const text = await exchange(idle.port, `${POST}${TYPE}content-length: 1000\r\n\r\n{`);
    expectEnvelope(answersIn(text)[0], 408);
  });

  it('a request that is being handled is answered by its handler', async () => {
    let idled = false;
    // On a busy machine, the time may be over before the request has arrived; then it begins anew.
    idle.app.server.on('timeout', () => (idled ||= idle.waiting.length > 0));
    const answer = exchange(idle.port, `GET /v1/wait HTTP/1.1\r\n${HOST}${CLOSE}\r\n`);
    await until(() => idled, 20_000, 'the idle timeout of the request');
    idle.waiting.splice(0).forEach(({ raw }) => raw.end('{}'));
    expect(await answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});
