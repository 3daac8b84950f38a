import { once } from 'node:events';
import type http from 'node:http';
import {
  type Client,
  closeBareServers,
  connect,
  errorIn,
  startBareServer as start,
} from '../../support/bare-server';
import { until } from '../../support/until';

afterEach(closeBareServers);

describe('a body that arrives slowly', () => {
  const RATE = { bytesPerSec: 1_000, graceMs: 400 };
  const post = (path: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`;

  /** Writes `bytes` every `everyMs` until the connection is closed or `count` pieces are sent. */
  function drip(client: Client, piece: { bytes: number; everyMs: number; count: number }): void {
    let sent = 0;
    const timer = setInterval(() => {
      if (client.socket.destroyed || sent++ === piece.count) clearInterval(timer);
      else client.socket.write('x'.repeat(piece.bytes));
    }, piece.everyMs);
  }

  it('is answered with 408, even if a byte arrives now and then', async () => {
    const { port, closed } = await start({}, RATE);
    const client = connect(port, post('/', 1_000_000));
    drip(client, { bytes: 1, everyMs: 20, count: Infinity });
    await client.closed;
    expect(closed).toEqual(['slow_body']);
    expect(client.text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(errorIn(client.text())['message']).toContain('at least 1000 bytes per second');
  });

  it('is read for any time while it keeps up the rate', async () => {
    const { port } = await start({}, RATE);
    const client = connect(port, post('/', 40 * 200));
    // 200 bytes every 30 ms: far above the rate, and three times as long as the grace.
    drip(client, { bytes: 200, everyMs: 30, count: 40 });
    await until(() => client.text().endsWith('hello'), 10_000, 'the answer');
  });

  it('cannot collect more credit than the grace by sending much at first', async () => {
    const { port } = await start({}, RATE);
    const client = connect(port, post('/', 1_000_000) + 'x'.repeat(100_000));
    drip(client, { bytes: 1, everyMs: 20, count: Infinity });
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('loses no credit while the server does not read', async () => {
    const { port, server } = await start({}, RATE);
    const length = 10_000;
    const client = connect(port, post('/unread', length) + 'x'.repeat(length - 1));
    const [request] = (await once(server, 'request')) as [http.IncomingMessage];
    // Wait until two other clients, which send nothing more, are refused one after the other.
    await connect(port, post('/', 10)).closed;
    await connect(port, post('/', 10)).closed;
    expect(client.text()).toBe('');
    request.resume();
    client.socket.write('x');
    await until(() => client.text().endsWith('read'), 5_000, 'the answer');
  });

  it('loses its connection if the answer has been sent already', async () => {
    const { port, open } = await start({}, RATE);
    const client = connect(port, post('/wait', 1_000_000));
    await until(() => open.length === 1, 5_000, 'the request');
    open[0]?.end('refused');
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 200 /);
    expect(client.text()).not.toContain('408');
  });
});
