import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  sendRequest,
  type OutboundFailure,
  type OutboundRequest,
} from '../../../platform/http-client/outbound-request';
import type { StreamedBody } from '../../../platform/http-client/outbound-body';
import { openConnectionPool } from '../../../platform/http-client/pool';
import type { OutboundAnswer } from '../../../platform/http-client/streamed-answer';
import { until } from '../../support/until';

const MIB = 1024 * 1024;
const TOTAL = 64 * MIB;
/** More than what the sockets of both sides and our own buffers hold. */
const BUFFERS = 24 * MIB;
const certificate = (name: string) =>
  readFileSync(path.join(__dirname, '../../inference/certificates', name));

const closers: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function listen(server: net.Server): Promise<number> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket.on('error', () => undefined));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const serve = (handle: http.RequestListener) => listen(http.createServer(handle));

function poolOf(port: number, scheme = 'http') {
  const pool = openConnectionPool(`${scheme}://127.0.0.1:${port}`, {
    connections: 2,
    timeoutMs: 10_000,
    tls: scheme === 'https' ? { ca: certificate('ca.pem') } : {},
    resetsOnAbort: true,
  });
  closers.push(() => pool.destroy());
  return pool;
}

function send(pool: ReturnType<typeof poolOf>, changes: Partial<OutboundRequest> = {}) {
  return sendRequest(pool, {
    method: 'POST',
    path: '/x',
    headers: ['content-type', 'text/plain'],
    body: Buffer.from('hello'),
    timeoutMs: 10_000,
    idleTimeoutMs: 5_000,
    maxAnswerBytes: 2 * TOTAL,
    signal: new AbortController().signal,
    ...changes,
  });
}

async function answerOf(call: ReturnType<typeof send>): Promise<OutboundAnswer> {
  const end = await call.answer;
  if (end.kind === 'failure') throw new Error(end.message);
  return end;
}

async function failureOf(call: ReturnType<typeof send>): Promise<OutboundFailure> {
  const end = await call.answer;
  if (end.kind === 'answer') throw new Error(`got ${end.status}`);
  return end;
}

async function read(answer: OutboundAnswer): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer.body) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function pieces(...texts: string[]): StreamedBody {
  return {
    bytes: texts.join('').length,
    async *open() {
      for (const text of texts) yield Buffer.from(text);
    },
  };
}

/** 64 MiB in pieces of 64 KiB, and how much of it was read. */
function largeBody() {
  const piece = Buffer.alloc(64 * 1024, 'a');
  const source = { produced: 0, isClosed: false };
  const body: StreamedBody = {
    bytes: TOTAL,
    async *open() {
      try {
        for (; source.produced < TOTAL; source.produced += piece.length) yield piece;
      } finally {
        source.isClosed = true;
      }
    },
  };
  return { body, source };
}

describe('a request on its way out', () => {
  it('carries a buffer, with its length, and the response carries status, fields and body', async () => {
    let received = '';
    const port = await serve((request, response) => {
      request.on('data', (chunk: Buffer) => (received += chunk.toString()));
      request.on('end', () => {
        response.writeHead(201, { 'retry-after': '7' });
        response.end(`${request.method} ${request.url} ${request.headers['content-length']}`);
      });
    });
    const answer = await answerOf(send(poolOf(port)));
    expect([answer.status, answer.header('retry-after'), answer.header('x')]).toEqual([
      201,
      '7',
      null,
    ]);
    expect((await read(answer)).toString()).toBe('POST /x 5');
    expect(received).toBe('hello');
  });

  it('streams a body of known length, without chunked coding', async () => {
    let bytes = 0;
    const port = await serve((request, response) => {
      request.on('data', (chunk: Buffer) => (bytes += chunk.length));
      request.on('end', () => response.end(request.headers['transfer-encoding'] ?? 'plain'));
    });
    const { body } = largeBody();
    const answer = await answerOf(send(poolOf(port), { body }));
    expect((await read(answer)).toString()).toBe('plain');
    expect(bytes).toBe(TOTAL);
  });

  it('reads its body no faster than the server takes it, and gives up when no byte moves', async () => {
    const port = await listen(net.createServer((socket) => void socket.pause()));
    const { body, source } = largeBody();
    const failure = await failureOf(send(poolOf(port), { body, idleTimeoutMs: 300 }));
    expect(failure).toMatchObject({ reason: 'timeout', mayBeSent: true });
    expect(failure.message).toContain('no byte moved');
    expect(source.produced).toBeLessThan(BUFFERS);
    await until(() => source.isClosed, 5_000, 'the end');
  });

  it('ends with the response if the server answers before the body has ended', async () => {
    const port = await listen(
      net.createServer((socket) =>
        socket.once('data', () =>
          socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno'),
        ),
      ),
    );
    const { body, source } = largeBody();
    const answer = await answerOf(send(poolOf(port), { body }));
    expect([answer.status, (await read(answer)).toString()]).toEqual([413, 'no']);
    await until(() => source.isClosed, 5_000, 'the end');
    expect(source.produced).toBeLessThan(TOTAL);
  });

  it('rejects with the error of a body that cannot be read', async () => {
    let ended = 0;
    const port = await serve((request) => request.resume().on('end', () => ended++));
    const fault = new Error('object is gone');
    const body: StreamedBody = {
      bytes: 10,
      async *open() {
        yield Buffer.from('12345');
        throw fault;
      },
    };
    const call = send(poolOf(port), { body });
    await expect(call.answer).rejects.toBe(fault);
    expect(call.failure()).toMatchObject({ reason: 'aborted' });
    expect(ended).toBe(0);
  });

  it('leaves redirects to the caller', async () => {
    let requests = 0;
    const port = await serve((_, response) => {
      requests++;
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    const answer = await answerOf(send(poolOf(port)));
    await read(answer);
    expect([answer.status, answer.header('location'), requests]).toEqual([307, '/elsewhere', 1]);
  });
});

describe('the permission to leave', () => {
  /** A server that keeps every byte it gets. */
  async function recorder() {
    const got: string[] = [];
    const port = await listen(
      net.createServer((socket) => {
        const index = got.push('') - 1;
        socket.on('data', (chunk: Buffer) => (got[index] += chunk.toString()));
      }),
    );
    return { port, text: () => got.join('') };
  }

  it.each<[string, OutboundRequest['body']]>([
    ['a buffer', Buffer.from('hello')],
    ['a streamed body', pieces('hello')],
    ['no body', null],
  ])('keeps back all of a request with %s if it is refused at first', async (_, body) => {
    const { port, text } = await recorder();
    const failure = await failureOf(send(poolOf(port), { body, mayLeave: () => false }));
    expect(failure).toMatchObject({ reason: 'unsent', mayBeSent: false });
    expect(text()).toBe('');
  });

  it('keeps back the head too if it ends between connection and first piece', async () => {
    const { port, text } = await recorder();
    const answers = [true, false];
    const mayLeave = () => answers.shift() ?? false;
    const failure = await failureOf(send(poolOf(port), { body: pieces('a', 'b'), mayLeave }));
    expect(failure).toMatchObject({ reason: 'unsent', mayBeSent: false });
    expect(text()).toBe('');
  });

  it('stops a body between two pieces, and says that something was sent', async () => {
    const { port, text } = await recorder();
    const answers = [true, true, false];
    const mayLeave = () => answers.shift() ?? false;
    const body = pieces('first', 'second');
    const failure = await failureOf(send(poolOf(port), { body, mayLeave }));
    expect(failure).toMatchObject({ reason: 'aborted', mayBeSent: true });
    expect(text()).not.toContain('second');
  });
});

describe('the end of a request without a response', () => {
  it('says that nothing was sent if nothing listens', async () => {
    const port = await serve(() => undefined);
    await closers.pop()?.();
    const failure = await failureOf(send(poolOf(port)));
    expect(failure).toMatchObject({ reason: 'connect', mayBeSent: false, code: 'ECONNREFUSED' });
  });

  it.each(['http', 'https'])('resets the %s connection after a timeout', async (scheme) => {
    const errors: string[] = [];
    let isReceived = false;
    const handle: http.RequestListener = (request) => {
      request.resume().on('end', () => (isReceived = true));
    };
    const keys = { cert: certificate('server.pem'), key: certificate('server-key.pem') };
    const server =
      scheme === 'https' ? https.createServer(keys, handle) : http.createServer(handle);
    // The TCP connection, also below TLS.
    server.on('connection', (socket: net.Socket) => {
      socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
    });
    server.on('clientError', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
    server.on('tlsClientError', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
    const port = await listen(server);
    const failure = await failureOf(send(poolOf(port, scheme), { timeoutMs: 1_000 }));
    expect(failure).toMatchObject({ reason: 'timeout', mayBeSent: true });
    expect(isReceived).toBe(true);
    await until(() => errors.includes('ECONNRESET'), 5_000, 'a reset');
  });

  it('is an abort if the signal aborts, before and after the request was sent', async () => {
    const abort = new AbortController();
    const port = await serve(() => abort.abort());
    const sent = await failureOf(send(poolOf(port), { signal: abort.signal }));
    expect(sent).toMatchObject({ reason: 'aborted', mayBeSent: true });
    const unsent = await failureOf(send(poolOf(port), { signal: abort.signal }));
    expect(unsent).toMatchObject({ reason: 'aborted', mayBeSent: false });
  });

  it('is known after the head too: the body breaks, and the call says why', async () => {
    const port = await listen(
      net.createServer((socket) =>
        socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf')),
      ),
    );
    const call = send(poolOf(port));
    const answer = await answerOf(call);
    await expect(read(answer)).rejects.toThrow();
    expect(call.failure()).toMatchObject({ reason: 'connection', mayBeSent: true });
  });
});

describe('a response on its way in', () => {
  /** A server that writes 64 MiB as fast as it may, and how much of it was written. */
  async function largeServer() {
    const written = { bytes: 0, isClosed: false };
    const piece = Buffer.alloc(64 * 1024, 'b');
    const port = await serve((_, response) => {
      response.on('close', () => (written.isClosed = true));
      const write = (): void => {
        while (written.bytes < TOTAL) {
          written.bytes += piece.length;
          if (!response.write(piece)) return void response.once('drain', write);
        }
        response.end();
      };
      write();
    });
    return { port, written };
  }

  it('is read no faster than its consumer takes it', async () => {
    const { port, written } = await largeServer();
    const answer = await answerOf(send(poolOf(port), { idleTimeoutMs: 200 }));
    let bytes = 0;
    let lead = 0;
    const startedMs = performance.now();
    for await (const chunk of answer.body) {
      // The consumer pauses once, for longer than the idle limit, which does not count against the server.
      if (bytes === 0)
        await until(() => performance.now() - startedMs > 400, 5_000, 'time to pass');
      bytes += (chunk as Buffer).length;
      lead = Math.max(lead, written.bytes - bytes);
    }
    expect(bytes).toBe(TOTAL);
    expect(lead).toBeLessThan(BUFFERS);
  });

  it('closes its connection if the consumer stops', async () => {
    const { port, written } = await largeServer();
    const answer = await answerOf(send(poolOf(port)));
    for await (const chunk of answer.body) {
      expect(chunk).toBeInstanceOf(Buffer);
      break;
    }
    await until(() => written.isClosed, 5_000, 'the end');
    expect(written.bytes).toBeLessThan(TOTAL);
  });

  it('fails when the server stops in the middle of the body', async () => {
    const port = await serve((_, response) => void response.write('a'));
    const call = send(poolOf(port), { idleTimeoutMs: 200 });
    await expect(read(await answerOf(call))).rejects.toThrow('no byte moved');
    expect(call.failure()).toMatchObject({ reason: 'timeout' });
  });

  it('is decoded, and held back while it is decoded', async () => {
    const zipped = gzipSync(Buffer.alloc(TOTAL, 'c'));
    const port = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped);
    });
    const answer = await answerOf(send(poolOf(port)));
    let bytes = 0;
    let held = 0;
    for await (const chunk of answer.body) {
      // Long enough to decode everything, if nothing held the decoder back.
      for (let turns = bytes === 0 ? 5_000 : 0; turns > 0; turns--) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      bytes += (chunk as Buffer).length;
      held = Math.max(held, answer.body.readableLength);
    }
    expect(bytes).toBe(TOTAL);
    expect(held).toBeLessThan(MIB);
  });

  it('fails if it declares more bytes than allowed, sends more, or unpacks to more', async () => {
    const zipped = gzipSync(Buffer.alloc(MIB));
    const port = await serve((request, response) => {
      if (request.url === '/declared') response.writeHead(200, { 'content-length': '1001' });
      else if (request.url === '/zipped') response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(request.url === '/zipped' ? zipped : Buffer.alloc(1_001));
    });
    const pool = poolOf(port);
    const limited = (target: string) => send(pool, { path: target, maxAnswerBytes: 1_000 });
    const declared = await failureOf(limited('/declared'));
    expect(declared).toMatchObject({ reason: 'too_large', mayBeSent: true });
    for (const target of ['/sent', '/zipped']) {
      const call = limited(target);
      const end = await call.answer;
      if (end.kind === 'answer') await expect(read(end)).rejects.toThrow('larger than 1000 bytes');
      expect(call.failure()).toMatchObject({ reason: 'too_large' });
    }
  });
});
