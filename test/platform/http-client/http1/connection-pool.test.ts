import net, { type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { HttpAttempt, type AttemptFailure } from '../../../../platform/http-client/attempt';
import { Http1Pool } from '../../../../platform/http-client/http1/connection-pool';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A server that gets whole requests without a body, and answers by hand. */
async function serve(onRequest: (socket: Socket, text: string, connection: number) => void) {
  const sockets: Socket[] = [];
  const server = net.createServer((socket) => {
    const number = sockets.push(socket);
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      if (end === -1) return;
      const request = text;
      text = '';
      onRequest(socket, request, number);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

function poolAt(port: number, settings: { connections?: number; keepAliveMs?: number } = {}) {
  const target = {
    url: new URL(`http://127.0.0.1:${port}`),
    connectTimeoutMs: 5_000,
    tls: {},
    session: { latest: null },
  };
  const pool = new Http1Pool({ target, connections: 10, keepAliveMs: 4_000, ...settings });
  closers.push(() => pool.destroy());
  return pool;
}

interface Sent {
  readonly attempt: HttpAttempt;
  /** The body of the answer, or the reason why there is none. */
  readonly end: Promise<string>;
}

interface SendOptions {
  readonly path?: string;
  readonly headers?: string[];
  readonly common?: readonly string[];
  readonly body?: Buffer;
  readonly onBytes?: (attempt: HttpAttempt, piece: Buffer) => void;
  readonly onEnd?: () => void;
}

function send(pool: Http1Pool, options: SendOptions = {}): Sent {
  let attempt!: HttpAttempt;
  const end = new Promise<string>((resolve) => {
    let body = '';
    attempt = new HttpAttempt({
      timeoutMs: 10_000,
      reader: {
        onHead: () => undefined,
        onBytes: (piece) => {
          body += piece.toString('latin1');
          options.onBytes?.(attempt, piece);
        },
        onEnd: () => {
          attempt.finish();
          options.onEnd?.();
          resolve(body);
        },
        onFailure: ({ reason }: AttemptFailure) => resolve(reason),
      },
    });
  });
  const { path = '/', headers = [], common = [], body = Buffer.alloc(0) } = options;
  pool.dispatch({ method: 'POST', path, headers, common, body }, attempt);
  return { attempt, end };
}

describe('a pool of connections', () => {
  it('sends the next request in the turn of an answer, over the same connection', async () => {
    const seen: string[] = [];
    const { port, sockets } = await serve((socket, text) => {
      seen.push(text);
      socket.write(OK);
    });
    const pool = poolAt(port);
    let second: Sent | null = null;
    const first = send(pool, {
      path: '/first',
      onEnd: () => (second = send(pool, { path: '/2?x' })),
    });
    expect(await first.end).toBe('ok');
    expect(await second!.end).toBe('ok');
    expect(sockets).toHaveLength(1);
    const head = `HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n`;
    expect(seen).toEqual([`POST /first ${head}`, `POST /2?x ${head}`]);
  });

  it.each([
    ['says so', 'HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 2\r\n\r\nok'],
    ['speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
    [
      'keeps it too briefly',
      'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nok',
    ],
    ['sends more than its answer', `${OK}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfake`],
  ])('opens another connection after a server that %s', async (_, answer) => {
    const { port, sockets } = await serve((socket) => socket.write(answer));
    const pool = poolAt(port);
    for (let i = 0; i < 3; i++) expect(await send(pool).end).toBe('ok');
    expect(sockets).toHaveLength(3);
  });

  it('keeps a connection of HTTP/1.0 if the server does', async () => {
    const answer = 'HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 2\r\n\r\nok';
    const { port, sockets } = await serve((socket) => socket.write(answer));
    const pool = poolAt(port);
    for (let i = 0; i < 3; i++) expect(await send(pool).end).toBe('ok');
    expect(sockets).toHaveLength(1);
  });

  it('closes a connection that gets unsolicited bytes', async () => {
    const { port, sockets } = await serve((socket) => socket.write(OK));
    const pool = poolAt(port);
    expect(await send(pool).end).toBe('ok');
    const [socket] = sockets;
    socket?.write(OK);
    await once(socket as Socket, 'close');
    expect(await send(pool).end).toBe('ok');
    expect(sockets).toHaveLength(2);
  });

  it('lets connections rest once a server has closed one without saying so', async () => {
    const { port } = await serve((socket) => socket.end(OK));
    const pool = poolAt(port);
    const ends: Promise<string>[] = [];
    // Each request follows in the turn of the answer before it.
    const next = (): void =>
      void ends.push(send(pool, { onEnd: () => ends.length < 6 && next() }).end);
    while (ends.length < 6) {
      next();
      for (let known = 0; known < ends.length; known++) await ends[known];
    }
    expect((await Promise.all(ends)).filter((how) => how !== 'ok')).toHaveLength(1);
  });

  it('fails a request whose answer breaks off, and takes one that ends with the connection', async () => {
    const { port } = await serve((socket, text) => {
      if (text.includes('/cut')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok');
      else if (text.includes('/open')) socket.end('HTTP/1.1 200 OK\r\n\r\nuntil the end');
      else socket.destroy();
    });
    const pool = poolAt(port);
    expect(await send(pool, { path: '/cut' }).end).toBe('connection');
    expect(await send(pool, { path: '/open' }).end).toBe('until the end');
    expect(await send(pool, { path: '/reset' }).end).toBe('connection');
  });

  it('does not harm the next request when an earlier one is aborted late', async () => {
    const { port, sockets } = await serve((socket, text) => {
      if (text.includes('/slow')) setImmediate(() => socket.write(OK));
      else socket.write(OK);
    });
    const pool = poolAt(port, { connections: 1 });
    const first = send(pool);
    expect(await first.end).toBe('ok');
    const second = send(pool, { path: '/slow' });
    first.attempt.abort();
    expect(await second.end).toBe('ok');
    expect(sockets).toHaveLength(1);
  });

  it('frees the place of an aborted request', async () => {
    const { port, sockets } = await serve((socket, text) => {
      if (!text.includes('/never')) socket.write(OK);
    });
    const pool = poolAt(port, { connections: 1 });
    const first = send(pool, { path: '/never' });
    const second = send(pool);
    await until(() => sockets.length === 1);
    first.attempt.abort();
    expect(await first.end).toBe('aborted');
    expect(await second.end).toBe('ok');
    expect(sockets).toHaveLength(2);
  });

  it('opens no more connections than allowed, and serves all that wait', async () => {
    const { port, sockets } = await serve((socket) => setImmediate(() => socket.write(OK)));
    const pool = poolAt(port, { connections: 3 });
    const ends = await Promise.all(Array.from({ length: 50 }, () => send(pool).end));
    expect(new Set(ends)).toEqual(new Set(['ok']));
    expect(sockets).toHaveLength(3);
  });

  it('closes connections that are not used', async () => {
    const { port, sockets } = await serve((socket) => socket.write(OK));
    const pool = poolAt(port, { keepAliveMs: 20 });
    expect(await send(pool).end).toBe('ok');
    await once(sockets[0] as Socket, 'close');
    expect(await send(pool).end).toBe('ok');
    expect(sockets).toHaveLength(2);
  });

  it('sends bodies of any size, also to a server that reads slowly', async () => {
    const server = net.createServer((socket) => {
      let bytes = 0;
      socket.on('error', () => undefined);
      socket.on('data', (piece) => {
        bytes += piece.length;
        // Reads a piece for each turn, so that the client's buffers are full meanwhile.
        socket.pause();
        setImmediate(() => socket.resume());
        if (piece.at(-1) === 0x2e) {
          const text = String(bytes);
          socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
        }
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => server.close());
    const pool = poolAt((server.address() as AddressInfo).port, { connections: 4 });
    const sizes = [1, 65_000, 65_536, 1_000_000, 8_000_000];
    const ends = sizes.map((size) => {
      const body = Buffer.alloc(size, 'a');
      body[size - 1] = 0x2e;
      return send(pool, { body }).end;
    });
    const received = (await Promise.all(ends)).map(Number);
    received.forEach((bytes, i) => expect(bytes - (sizes[i] ?? 0)).toBeGreaterThan(60));
    received.forEach((bytes, i) => expect(bytes - (sizes[i] ?? 0)).toBeLessThan(200));
  });

  it('stops reading while the reader holds the answer', async () => {
    const bytes = 32 * 1024 * 1024;
    const { port, sockets } = await serve((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n`);
      socket.write(Buffer.alloc(bytes, 'a'));
    });
    const pool = poolAt(port);
    let received = 0;
    const { attempt, end } = send(pool, {
      onBytes: (one, piece) => {
        received += piece.length;
        if (received === piece.length) one.hold();
      },
    });
    await until(() => received > 0);
    const before = received;
    // The server cannot write any further, so its buffer stays full.
    await until(() => (sockets[0]?.writableLength ?? 0) > 1024 * 1024);
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(received).toBe(before);
    attempt.release();
    expect((await end).length).toBe(bytes);
  });

  it.each([
    ['a name', { headers: ['a b', 'c'] }],
    ['a value', { headers: ['a', 'b\r\nc: d'] }],
    ['a common value', { common: ['a', 'b\r\nc: d'] }],
    ['a path', { path: '/ HTTP/1.1\r\nx: y' }],
  ])('refuses %s that HTTP cannot carry', async (_, options) => {
    let requests = 0;
    const { port } = await serve(() => requests++);
    expect(await send(poolAt(port), options).end).toBe('connection');
    expect(requests).toBe(0);
  });

  it('sends common headers with every request, also when the path changes', async () => {
    const seen: string[] = [];
    const { port } = await serve((socket, text) => {
      seen.push(text);
      socket.write(OK);
    });
    const pool = poolAt(port);
    const common = ['x-team', 'a', 'accept', '*/*'];
    for (const path of ['/1', '/1', '/2']) {
      expect(await send(pool, { path, common, headers: ['x-id', `of${path}`] }).end).toBe('ok');
    }
    expect(await send(pool, { path: '/2' }).end).toBe('ok');
    const headOf = (path: string, fields: string) =>
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: keep-alive\r\n${fields}content-length: 0\r\n\r\n`;
    const commonOnes = 'x-team: a\r\naccept: */*\r\n';
    expect(seen).toEqual([
      headOf('/1', `${commonOnes}x-id: of/1\r\n`),
      headOf('/1', `${commonOnes}x-id: of/1\r\n`),
      headOf('/2', `${commonOnes}x-id: of/2\r\n`),
      headOf('/2', ''),
    ]);
  });

  it('begins a few connections in each turn, so that the first requests do not wait for all', async () => {
    const begun: number[] = [];
    const connect = jest.spyOn(net, 'connect');
    closers.push(() => connect.mockRestore());
    const { port } = await serve((socket) => {
      begun.push(connect.mock.calls.length);
      socket.write(OK);
    });
    const pool = poolAt(port, { connections: 100 });
    const sent = Array.from({ length: 100 }, () => send(pool));
    expect(connect).toHaveBeenCalledTimes(16);
    for (const { end } of sent) expect(await end).toBe('ok');
    // When the first request arrived, not all connections were begun yet.
    expect(begun[0]).toBeLessThan(100);
    expect(begun).toHaveLength(100);
  });

  it('fails what waits, and what comes later, when it is destroyed', async () => {
    const { port } = await serve(() => undefined);
    const pool = poolAt(port, { connections: 1 });
    const waiting = [send(pool), send(pool)];
    await pool.destroy();
    expect(await Promise.all(waiting.map(({ end }) => end))).toEqual(['connect', 'connect']);
    expect(await send(pool).end).toBe('connect');
  });
});

/** Resolves when `condition` holds; fails after 10 s. */
async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('waited 10 s');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('connections that are opened ahead', () => {
  it('are as many as are wanted beside those that are free, within the limit, and carry requests', async () => {
    const { port, sockets } = await serve((socket) => socket.write(OK));
    const pool = poolAt(port, { connections: 40 });
    pool.prepare(20);
    await until(() => sockets.length === 20);
    expect(await send(pool).end).toBe('ok');
    pool.prepare(25);
    await until(() => sockets.length === 25);
    pool.prepare(5);
    pool.prepare(100);
    await until(() => sockets.length === 40);
    expect(await Promise.all(Array.from({ length: 40 }, () => send(pool).end))).toHaveLength(40);
    expect(sockets).toHaveLength(40);
  });

  it('are closed if no request uses them', async () => {
    const { port, sockets } = await serve((socket) => socket.write(OK));
    const pool = poolAt(port, { keepAliveMs: 50 });
    pool.prepare(3);
    await until(() => sockets.length === 3);
    await until(() => sockets.every(({ readyState }) => readyState !== 'open'));
  });

  it('are given up after the first that cannot be opened, and a request still says so', async () => {
    const { port } = await serve(() => undefined);
    for (const close of closers.splice(0)) await close();
    const pool = poolAt(port);
    pool.prepare(10);
    expect(await send(pool).end).toBe('connect');
  });

  it('are not opened by a closed pool', async () => {
    const { port, sockets } = await serve((socket) => socket.write(OK));
    const pool = poolAt(port);
    await pool.destroy();
    pool.prepare(3);
    expect(await send(poolAt(port)).end).toBe('ok');
    expect(sockets).toHaveLength(1);
  });
});
