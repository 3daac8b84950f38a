import { type Client, closeBareServers, connect } from '../support/bare-server';
import { until } from '../support/until';
import {
  ask,
  closeAll,
  startBackend,
  startGateway,
  type TestGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

afterEach(closeBareServers);
afterEach(closeAll);

const KIB = 1_024;
/** Room for four bodies of the largest size, one of them of batches. */
const BYTES = { max_body_bytes: '64KiB', sheddable_bytes: '64KiB', queue_bytes: '256KiB' };
const ONE = {
  request_queue_controller: { watermark_per_backend: 1, upper_bound_per_backend: 1 },
};

/** Begins a request on a connection of its own, and sends no more than `begin` of its body. */
function begin(gateway: TestGateway, headers: string, body = ''): Client {
  const lines = `host: localhost\r\ncontent-type: application/json\r\n${headers}\r\n\r\n`;
  const port = Number(new URL(gateway.url).port);
  return connect(port, `POST /v1/chat/completions HTTP/1.1\r\n${lines}${body}`);
}

const declared = (bytes: number) => `content-length: ${bytes}`;
/** More than half of the largest body, so that its whole length is reserved. */
const HALF = 'x'.repeat(40 * KIB);
const CHUNKED = 'transfer-encoding: chunked';
const chunkOf = (bytes: number) => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

async function untilReceiving(gateway: TestGateway, bytes: number): Promise<void> {
  const is = async () => (await gateway.receivingBytes()) === bytes;
  await until(is, 5_000, `${bytes} reserved bytes`, 5);
}

async function untilStatus(client: Client, status: number): Promise<void> {
  await until(() => client.text().startsWith(`HTTP/1.1 ${status} `), 5_000, `a ${status}`, 2);
}

it('refuses bodies beyond queue_bytes while slow senders use them all', async () => {
  const gateway = await startGateway([await startBackend()], BYTES);
  for (const bytes of [64, 128, 192, 256]) {
    begin(gateway, declared(64 * KIB), HALF);
    await untilReceiving(gateway, bytes * KIB);
  }
  const clients = Array.from({ length: 20 }, () => begin(gateway, declared(64 * KIB), '{'));
  const refused = () => clients.filter((client) => client.text() !== '');
  await until(() => refused().length === 20, 5_000, 'refusals', 5);
  expect(await gateway.receivingBytes()).toBe(256 * KIB);
  for (const client of refused()) {
    await until(() => client.text().includes('"code":"queue_bytes_exceeded"'), 5_000, 'its code');
    expect(client.text()).toMatch(/^HTTP\/1\.1 503 /);
    expect(client.text()).toContain('x-nightshift-dropped: queue_bytes_exceeded\r\n');
    expect(client.text()).toContain('retry-after: ');
  }
  const dropped =
    'gateway_dropped_total{band="standard",code="queue_bytes_exceeded",process="gateway"}';
  expect(await gateway.metric(dropped)).toBe(20);
});

it('lets a body take the room of the slowest ones, which are refused', async () => {
  const settings = { ...BYTES, body_grace: '300ms', min_body_rate: 0 };
  const gateway = await startGateway([await startBackend((_, to) => void to.end('{}'))], settings);
  const slow: Client[] = [];
  for (const bytes of [64, 128, 192, 256]) {
    slow.push(begin(gateway, declared(64 * KIB), HALF));
    await untilReceiving(gateway, bytes * KIB);
  }
  const body = { messages: ['x'.repeat(50 * KIB)] };
  const isServed = async () => (await ask(gateway, body).answer).status === 200;
  await until(isServed, 5_000, 'room for a body', 20);
  await untilStatus(slow[0]!, 503);
  await until(() => slow[0]!.text().includes('"code":"queue_bytes_exceeded"'), 5_000, 'its code');
  expect(slow[0]!.text()).toContain('x-nightshift-dropped: queue_bytes_exceeded\r\n');
  expect(slow.slice(1).map((client) => client.text())).toEqual(['', '', '']);
  await untilReceiving(gateway, 192 * KIB);
  // What still comes of it is read and dropped, and the connection goes on.
  const [head, next] = ['POST /v1/chat/completions HTTP/1.1\r\n', '{"model":"m"}'];
  const lines = `host: localhost\r\ncontent-type: application/json\r\n${declared(next.length)}`;
  slow[0]!.socket.write(`${'x'.repeat(24 * KIB)}${head}${lines}\r\n\r\n${next}`);
  await until(() => slow[0]!.text().includes('HTTP/1.1 200 '), 5_000, 'the next answer');
});

it('has room for others while clients declare long bodies and send little', async () => {
  const gateway = await startGateway([await startBackend()], BYTES);
  for (let i = 1; i <= 8; i++) {
    begin(gateway, declared(64 * KIB), '{');
    await untilReceiving(gateway, i * 16 * KIB);
  }
  begin(gateway, declared(64 * KIB), HALF);
  await untilReceiving(gateway, (8 * 16 + 64) * KIB);
});

it('refuses bodies without a declared length when their bytes have no room', async () => {
  const gateway = await startGateway([await startBackend()], BYTES);
  for (const bytes of [64, 128, 192]) {
    begin(gateway, declared(64 * KIB), HALF);
    await untilReceiving(gateway, bytes * KIB);
  }
  const client = begin(gateway, CHUNKED, chunkOf(1));
  await untilReceiving(gateway, (192 + 16) * KIB);
  client.socket.write(chunkOf(20 * KIB));
  await untilReceiving(gateway, (192 + 32) * KIB);
  const other = begin(gateway, CHUNKED, chunkOf(32 * KIB));
  await untilReceiving(gateway, 256 * KIB);
  client.socket.write(chunkOf(20 * KIB));
  await untilStatus(client, 503);
  await untilReceiving(gateway, (192 + 32) * KIB);
  other.socket.destroy();
  await untilReceiving(gateway, 192 * KIB);
});

it('leaves room for users while batches use all of sheddable_bytes', async () => {
  const gateway = await startGateway([await startBackend()], BYTES);
  const batch = `x-gateway-inference-objective: batch\r\n${declared(64 * KIB)}`;
  begin(gateway, batch, HALF);
  await untilReceiving(gateway, 64 * KIB);
  await untilStatus(begin(gateway, batch, '{'), 503);
  begin(gateway, declared(64 * KIB), HALF);
  await untilReceiving(gateway, 128 * KIB);
});

it.each([
  ['is not JSON', 400, declared(4), '{{{{'],
  ['is for an unknown model', 404, declared(13), '{"model":"x"}'],
  ['is encoded', 415, `content-encoding: gzip\r\n${declared(9)}`, ''],
  ['is too large, as declared', 413, declared(65 * KIB), ''],
  ['is too large, as it shows', 413, CHUNKED, chunkOf(60 * KIB) + chunkOf(5 * KIB)],
  ['arrives too slowly', 408, declared(64 * KIB), '{'],
])('frees the bytes of a body that %s', async (_name, status, headers, body) => {
  const gateway = await startGateway([await startBackend()], { ...BYTES, body_grace: '300ms' });
  await untilStatus(begin(gateway, headers, body), status);
  await untilReceiving(gateway, 0);
  // Bytes that were freed twice would let more bodies in than there is room for.
  for (const bytes of [64, 128, 192, 256]) {
    begin(gateway, declared(64 * KIB), HALF);
    await untilReceiving(gateway, bytes * KIB);
  }
  await untilStatus(begin(gateway, declared(64 * KIB), '{'), 503);
});

it('frees the bytes of a pipelined body when the connection ends before its turn', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], BYTES);
  const first = JSON.stringify({ model: 'm' });
  const client = begin(gateway, declared(first.length), first);
  await untilHeld(backend, 1);
  const lines = `host: localhost\r\ncontent-type: application/json\r\n${declared(64 * KIB)}`;
  client.socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${lines}\r\n\r\n${HALF}`);
  await untilReceiving(gateway, 64 * KIB);
  client.socket.destroy();
  await untilReceiving(gateway, 0);
});

it('counts the body of a waiting request in its queue only, and that of a running one nowhere', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], { ...BYTES, ...ONE });
  const running = ask(gateway);
  await untilHeld(backend, 1);
  expect(await gateway.receivingBytes()).toBe(0);
  const body = Buffer.from(JSON.stringify({ model: 'm', messages: ['x'.repeat(50 * KIB)] }));
  const waiting = ask(gateway, body);
  await untilQueued(gateway, 1);
  expect((await gateway.flow()).queued_bytes).toBe(body.length);
  expect(await gateway.receivingBytes()).toBe(0);
  backend.respond();
  await running.answer;
  await untilHeld(backend, 1);
  expect((await gateway.flow()).queued_bytes).toBe(0);
  expect(await gateway.receivingBytes()).toBe(0);
  expect(backend.held[0]?.body.equals(body)).toBe(true);
  backend.respond();
  expect((await waiting.answer).status).toBe(200);
});

it('reads no body of an unknown path', async () => {
  const gateway = await startGateway([await startBackend()], BYTES);
  const port = Number(new URL(gateway.url).port);
  const lines = `host: localhost\r\ncontent-type: application/json\r\n${declared(64 * KIB)}`;
  const client = connect(port, `POST /v1/unknown HTTP/1.1\r\n${lines}\r\n\r\n{`);
  await untilStatus(client, 404);
});
