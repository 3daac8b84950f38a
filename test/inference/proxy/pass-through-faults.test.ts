import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { closeAll, frontOf, onClose, passTo, POST, rawClient, rawServer } from './proxy-fixtures';
import { until } from '../../support/until';

afterEach(closeAll);

const EVENTS =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const FIRST = '9\r\ndata: 1\n\n\r\n';

/** A backend that sends the head and one event of a stream, and then nothing. */
function stalled(): ReturnType<typeof rawServer> {
  return rawServer((socket) => void socket.write(EVENTS + FIRST));
}

describe('a backend that fails', () => {
  it('is unreachable if nothing listens, and the response stays unwritten', async () => {
    const backend = await rawServer(() => undefined);
    const { url } = backend;
    await closeAll();
    const front = await frontOf(url);
    const client = rawClient(front.port, POST);
    const end = await front.ended();
    expect(end).toMatchObject({ outcome: 'unreachable', status: null, isHeadSent: false });
    expect(end.message).toContain('ECONNREFUSED');
    await until(() => client.text().endsWith('unreachable\r\n0\r\n\r\n'), 5_000, 'the own answer');
  });

  it('is lost if it closes the connection before its answer', async () => {
    const backend = await rawServer((socket) => socket.destroy());
    const front = await frontOf(backend.url);
    rawClient(front.port, POST);
    expect(await front.ended()).toMatchObject({ outcome: 'lost', status: null, isHeadSent: false });
  });

  it('is lost if its answer is not HTTP', async () => {
    const backend = await rawServer((socket) => void socket.write('hello\r\n\r\n'));
    const front = await frontOf(backend.url);
    rawClient(front.port, POST);
    expect(await front.ended()).toMatchObject({ outcome: 'lost', isHeadSent: false });
  });

  it('may answer with long headers, and is lost with a reason beyond 64 KiB', async () => {
    const fields = (bytes: number) => `x-a: ${'a'.repeat(bytes - 3)}\r\ncontent-length: 0\r\n`;
    const replies = [fields(60 * 1024), fields(64 * 1024)];
    const backend = await rawServer((socket, received) => {
      if (received.toString().endsWith('{}'))
        socket.write(`HTTP/1.1 200 OK\r\n${replies.shift()}\r\n`);
    });
    const front = await frontOf(backend.url);
    rawClient(front.port, POST);
    expect(await front.ended()).toMatchObject({ outcome: 'answered', status: 200 });
    rawClient(front.port, POST);
    const end = await front.ended(2);
    expect(end).toMatchObject({ outcome: 'lost', isHeadSent: false });
    expect(end.message).toContain('longer than 64 KiB');
  });

  it.each([
    ['chunked', EVENTS + FIRST, 'HTTP/1.1'],
    ['of a known length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', 'HTTP/1.1'],
    ['to an HTTP/1.0 client', EVENTS + FIRST, 'HTTP/1.0'],
  ])(
    'cuts the answer for the client if it dies in an answer that is %s',
    async (_, sent, version) => {
      const backend = await rawServer((socket) => void socket.write(sent));
      const front = await frontOf(backend.url);
      const client = rawClient(front.port, POST.replace('HTTP/1.1', version));
      await until(() => /half|data: 1/.test(client.text()), 5_000, 'the first bytes');
      let wasReset = false;
      client.socket.on('error', () => (wasReset = true));
      backend.sockets.forEach((socket) => socket.destroy());
      expect(await front.ended()).toMatchObject({ outcome: 'lost', status: 200, isHeadSent: true });
      await until(() => client.socket.destroyed, 5_000, 'the cut');
      expect(client.text()).not.toContain('\r\n0\r\n\r\n');
      expect(wasReset).toBe(version === 'HTTP/1.0');
    },
  );

  it('times out if its answer stalls, and both connections are closed', async () => {
    const backend = await stalled();
    const front = await frontOf(backend.url, { stallTimeoutMs: 100 });
    const client = rawClient(front.port, POST);
    expect(await front.ended()).toMatchObject({ outcome: 'timeout', events: 1, isHeadSent: true });
    await until(() => client.socket.destroyed && backend.sockets.size === 0, 5_000, 'both ends');
    expect(client.text()).not.toContain('\r\n0\r\n\r\n');
  });

  it('does not stall as long as bytes come, and may take any time until the head', async () => {
    const timers: NodeJS.Timeout[] = [];
    onClose(() => timers.forEach(clearInterval));
    const backend = await rawServer((socket) => {
      let sent = 0;
      const next = () => {
        sent++;
        if (sent < 4) return;
        socket.write(sent === 4 ? EVENTS + FIRST : sent < 10 ? FIRST : '0\r\n\r\n');
        if (sent === 10) timers.forEach(clearInterval);
      };
      timers.push(setInterval(next, 50));
    });
    const front = await frontOf(backend.url, { stallTimeoutMs: 150 });
    rawClient(front.port, POST);
    expect(await front.ended()).toMatchObject({ outcome: 'answered', events: 6 });
  });

  it('times out if its answer is not complete in time', async () => {
    const backend = await rawServer(() => undefined);
    const front = await frontOf(backend.url, { requestTimeoutMs: 100 });
    rawClient(front.port, POST);
    expect(await front.ended()).toMatchObject({
      outcome: 'timeout',
      status: null,
      isHeadSent: false,
    });
    await until(() => backend.sockets.size === 0, 5_000, 'the connection to close');
  });
});

describe('a client that fails', () => {
  it.each(['before the head', 'after the head'])(
    'closes the connection to the backend if it hangs up %s',
    async (when) => {
      const isAfter = when === 'after the head';
      const backend = isAfter ? await stalled() : await rawServer(() => undefined);
      const front = await frontOf(backend.url);
      const client = rawClient(front.port, POST);
      await until(() => backend.sockets.size === 1, 5_000, 'the request at the backend');
      if (isAfter) await until(() => client.text().includes('data: 1'), 5_000, 'an event');
      client.socket.destroy();
      expect(await front.ended()).toMatchObject({ outcome: 'client_closed', isHeadSent: isAfter });
      await until(() => backend.sockets.size === 0, 5_000, 'the connection to close');
      expect(front.ends).toHaveLength(1);
    },
  );

  it('gets all bytes however slowly it reads, and the backend waits for it', async () => {
    const body = Buffer.alloc(48 * 1024 * 1024, 'abcdefg');
    let upstream: Socket | undefined;
    const backend = await rawServer((socket) => {
      upstream = socket;
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
      socket.end(body);
    });
    const front = await frontOf(backend.url);
    const client = rawClient(front.port, POST);
    client.socket.pause();
    let held = -1;
    await until(
      () => {
        const before = held;
        held = front.bytesWritten();
        return upstream !== undefined && held > 0 && held === before;
      },
      5_000,
      'the flow to stop',
      100,
    );
    // What the kernel buffers is out of reach; the process itself holds a read and a socket buffer.
    expect(front.bufferedBytes()).toBeLessThan(300_000);
    expect(front.ends).toHaveLength(0);
    client.socket.resume();
    expect(await front.ended()).toMatchObject({ outcome: 'answered', bytes: body.length });
    const isComplete = () => client.bytes().subarray(-body.length).equals(body);
    await until(isComplete, 10_000, 'the whole answer', 100);
  });

  it('ends the exchange if it takes nothing for too long', async () => {
    const body = Buffer.alloc(48 * 1024 * 1024);
    const backend = await rawServer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
      socket.write(body);
    });
    const front = await frontOf(backend.url, { stallTimeoutMs: 200 });
    rawClient(front.port, POST).socket.pause();
    const end = await front.ended();
    expect(end).toMatchObject({ outcome: 'timeout', isHeadSent: true });
    expect(end.message).toContain('client');
    await until(() => backend.sockets.size === 0, 5_000, 'the backend connection to close');
  });
});

describe('a response that was not written to', () => {
  it('is left without listeners, so that any number of backends can be tried', async () => {
    const backend = await rawServer((socket) => socket.destroy());
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const before = response.eventNames();
    await passTo(backend.url, response, {});
    expect(response.eventNames()).toEqual(before);
  });
});

describe('a client that does not take the end of an answer', () => {
  it('loses its connection, although the exchange with the backend is over', async () => {
    const backend = await rawServer(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'),
    );
    // A socket that never takes what is written to it.
    const socket = new Duplex({ read: () => undefined, write: () => undefined });
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    response.assignSocket(socket as Socket);
    const end = await passTo(backend.url, response, { stallTimeoutMs: 50 });
    expect(end).toMatchObject({ outcome: 'answered', bytes: 2 });
    expect(socket.destroyed).toBe(false);
    await until(() => socket.destroyed, 5_000, 'the connection to close');
  });
});

describe('the caller', () => {
  it('can abort an exchange', async () => {
    const backend = await stalled();
    const cancel = new AbortController();
    const front = await frontOf(backend.url, { signal: cancel.signal });
    const client = rawClient(front.port, POST);
    await until(() => client.text().includes('data: 1'), 5_000, 'an event');
    cancel.abort();
    expect(await front.ended()).toMatchObject({ outcome: 'aborted', isHeadSent: true });
    await until(() => client.socket.destroyed && backend.sockets.size === 0, 5_000, 'both ends');
  });

  it('can decline an answer and write another one', async () => {
    const backend = await rawServer(
      (socket) =>
        void socket.write('HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy'),
    );
    const seen: string[][] = [];
    const front = await frontOf(backend.url, {
      onHead: (status, headers) => {
        seen.push([String(status), ...headers]);
        return null;
      },
    });
    const client = rawClient(front.port, POST);
    const end = await front.ended();
    expect(end).toMatchObject({ outcome: 'declined', status: 429, isHeadSent: false });
    expect(seen).toEqual([['429', 'Retry-After', '7', 'Content-Length', '4']]);
    await until(() => client.text().endsWith('declined\r\n0\r\n\r\n'), 5_000, 'the own answer');
    expect(client.text()).not.toContain('busy');
    // Its connection is used again.
    client.socket.write(POST);
    await front.ended(2);
    expect(backend.sockets.size).toBe(1);
  });

  it('gets the time of the first byte, and may change the head', async () => {
    const backend = await rawServer(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'),
    );
    const times: number[] = [];
    const front = await frontOf(backend.url, {
      onHead: (_, headers) => [...headers, 'Server-Timing', 'queue;dur=0'],
      onFirstByte: (ms) => void times.push(ms),
      ownHeaders: ['x-request-id', 'own'],
    });
    const client = rawClient(front.port, POST);
    const end = await front.ended();
    expect(times).toEqual([end.ttfbMs]);
    await until(() => client.text().endsWith('{}'), 5_000, 'the answer');
    expect(client.text()).toContain('Server-Timing: queue;dur=0\r\n');
  });
});
