/** One client that is slow, or holds many connections: it hears why it is refused, and others go on. */
import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { addConnectionEvents } from '../../../http/connections/connection-events';
import { limitConnections } from '../../../http/connections/connection-limits';
import type { ConnectionLimits } from '../../../http/connections/connection-table';
import { type BodyRate, watchBodyRates } from '../../../http/connections/body-rate';
import { batchForm, BOUNDARY, formBytes, openTestApi } from '../../support/api';
import { POSTGRES_START_MS } from '../../support/postgres';
import { until } from '../../support/until';

interface World {
  readonly server: http.Server;
  readonly port: number;
  /** Requests that wait for their answer. */
  readonly open: http.ServerResponse[];
}

const servers: http.Server[] = [];
const sockets: net.Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A server that answers `/wait` when a test says so, and anything else when its body is there. */
async function start(limits: Partial<ConnectionLimits>, rate?: BodyRate): Promise<World> {
  const open: http.ServerResponse[] = [];
  const server = http.createServer((request, response) => {
    if (request.url === '/wait') open.push(response);
    else if (request.url === '/unread') request.once('end', () => response.end('read'));
    else request.resume().once('end', () => response.end('hello'));
  });
  addConnectionEvents(server, 1_000_000);
  limitConnections(server, {
    ...{ total: 1_000, perAddress: 1_000, perAddressSetting: 'a.setting' },
    ...limits,
  });
  if (rate !== undefined) watchBodyRates(server, rate);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return { server, port: (server.address() as AddressInfo).port, open };
}

interface Client {
  readonly socket: net.Socket;
  text(): string;
  readonly closed: Promise<unknown>;
}

function connect(port: number, bytes = '', localAddress = '127.0.0.1'): Client {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress });
  sockets.push(socket);
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  if (bytes !== '') socket.write(bytes);
  return { socket, text: () => text, closed: once(socket, 'close') };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

function errorIn(text: string): Record<string, unknown> {
  expect(text).toMatch(/x-request-id: req_[0-9a-f]{32}\r\n/);
  expect(text).toMatch(/content-type: application\/json/);
  return (JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as { error: never }).error;
}

describe('connections beyond the limit', () => {
  it('are refused with a reason while all others are at work', async () => {
    const { port, open } = await start({ total: 3 });
    const busy = [1, 2, 3].map(() => connect(port, get('/wait')));
    await until(() => open.length === 3, 5_000, 'all three to wait');
    const late = connect(port, get('/'));
    await late.closed;
    expect(late.text()).toMatch(/^HTTP\/1\.1 503 /);
    expect(late.text()).toMatch(/retry-after: \d/);
    expect(errorIn(late.text())).toMatchObject({ type: 'server_error', param: null, code: null });
    for (const response of open) response.end('done');
    await until(() => busy.every((client) => client.text().endsWith('done')), 5_000, 'answers');
    busy[0]?.socket.destroy();
    await busy[0]?.closed;
    await until(
      async () => {
        const next = connect(port, get('/').replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'));
        await next.closed;
        return next.text().endsWith('hello');
      },
      5_000,
      'room for another one',
    );
  });

  it('make room by closing the longest idle one, which others need not wait for', async () => {
    const { port } = await start({ total: 3 });
    const [silent, partial, kept] = [
      connect(port),
      connect(port, 'GET / HTTP/1.1\r\nhost: lo'),
      connect(port, get('/')),
    ];
    await until(() => kept.text().endsWith('hello'), 5_000, 'the first answer');
    const served: Client[] = [];
    await until(
      async () => {
        const next = connect(port, get('/'));
        await Promise.race([
          next.closed,
          until(() => next.text().endsWith('hello'), 5_000, 'its answer'),
        ]);
        if (next.text().endsWith('hello')) served.push(next);
        return served.length === 2;
      },
      10_000,
      'two more to be served',
    );
    await Promise.all([silent.closed, partial.closed]);
    expect(silent.text()).toBe('');
    expect(partial.text()).toMatch(/^HTTP\/1\.1 503 /);
    expect(errorIn(partial.text())['message']).toContain('too long to arrive');
    expect(kept.socket.closed).toBe(false);
  });

  it('are counted for each address', async () => {
    const { port, open } = await start({ perAddress: 2 });
    for (let i = 0; i < 2; i++) connect(port, get('/wait'));
    await until(() => open.length === 2, 5_000, 'both to wait');
    const third = connect(port, get('/'));
    await third.closed;
    expect(third.text()).toMatch(/^HTTP\/1\.1 429 /);
    expect(errorIn(third.text())).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded' });
    const other = connect(port, get('/'), '127.0.0.2');
    await until(() => other.text().endsWith('hello'), 5_000, 'the other address to be served');
  });

  it('that nobody answers any more are closed, however many come', async () => {
    const { port, open } = await start({ total: 1 });
    connect(port, get('/wait'));
    await until(() => open.length === 1, 5_000, 'the first to wait');
    const crowd = Array.from({ length: 400 }, () => connect(port));
    await Promise.all(crowd.map(({ closed }) => closed));
    expect(crowd.some((client) => client.text().startsWith('HTTP/1.1 503 '))).toBe(true);
  }, 20_000);
});

describe('a body that comes slowly', () => {
  const RATE = { bytesPerSec: 1_000, graceMs: 400 };
  const post = (path: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`;

  /** Writes `bytes` every `everyMs` until the connection is closed or `count` pieces are out. */
  function drip(client: Client, piece: { bytes: number; everyMs: number; count: number }): void {
    let sent = 0;
    const timer = setInterval(() => {
      if (client.socket.destroyed || sent++ === piece.count) clearInterval(timer);
      else client.socket.write('x'.repeat(piece.bytes));
    }, piece.everyMs);
  }

  it('is answered with 408, though a byte comes now and then', async () => {
    const { port } = await start({}, RATE);
    const client = connect(port, post('/', 1_000_000));
    drip(client, { bytes: 1, everyMs: 20, count: Infinity });
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(errorIn(client.text())['message']).toContain('at least 1000 bytes per second');
  });

  it('is taken as long as it keeps up the rate', async () => {
    const { port } = await start({}, RATE);
    const client = connect(port, post('/', 40 * 200));
    // 200 bytes every 30 ms: far above the rate, and three times as long as the grace.
    drip(client, { bytes: 200, everyMs: 30, count: 40 });
    await until(() => client.text().endsWith('hello'), 10_000, 'the answer');
  });

  it('may not save up time by sending much at first', async () => {
    const { port } = await start({}, RATE);
    const client = connect(port, post('/', 1_000_000) + 'x'.repeat(100_000));
    drip(client, { bytes: 1, everyMs: 20, count: Infinity });
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('is not blamed for what we do not read', async () => {
    const { port, server } = await start({}, RATE);
    const length = 10_000;
    const client = connect(port, post('/unread', length) + 'x'.repeat(length - 1));
    const [request] = (await once(server, 'request')) as [http.IncomingMessage];
    // As long as it takes until two others, which send nothing more, are refused one after the other.
    await connect(port, post('/', 10)).closed;
    await connect(port, post('/', 10)).closed;
    expect(client.text()).toBe('');
    request.resume();
    client.socket.write('x');
    await until(() => client.text().endsWith('read'), 5_000, 'the answer');
  });

  it('loses its connection if it has been answered', async () => {
    const { port, open } = await start({}, RATE);
    const client = connect(port, post('/wait', 1_000_000));
    await until(() => open.length === 1, 5_000, 'the request');
    open[0]?.end('refused');
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 200 /);
    expect(client.text()).not.toContain('408');
  });
});

it(
  'has these limits in the API',
  async () => {
    const api = await openTestApi({
      config: {
        api: {
          ...{ min_body_rate: 1_000, body_grace: '300ms', header_timeout: '500ms' },
          ...{ max_connections: 4, max_connections_per_address: 2 },
        },
      },
    });
    await api.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = api.app.server.address() as AddressInfo;
    const before = await api.keys();
    const form = formBytes(batchForm());
    const type = `content-type: multipart/form-data; boundary=${BOUNDARY}`;
    const head = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\n${type}\r\ncontent-length: ${form.length}\r\n\r\n`;
    const upload = connect(port, head + form.subarray(0, 100).toString());
    const slow = connect(port, 'GET /v1/files HTTP/1.1\r\nhost: local');
    const third = connect(port, get('/health'));
    await Promise.all([upload.closed, slow.closed, third.closed]);
    expect(third.text()).toMatch(/^HTTP\/1\.1 429 /);
    expect(upload.text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 408 /);
    for (const client of [upload, slow]) {
      expect(errorIn(client.text())).toMatchObject({ type: 'invalid_request_error', code: null });
    }
    await until(async () => (await api.keys()).length === before.length, 5_000, 'its object to go');
    await api.close();
  },
  POSTGRES_START_MS,
);
