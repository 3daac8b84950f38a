import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { NightshiftError } from '../../../core/errors';
import { collectBody } from '../../../http/bodies/collect-body';
import { until } from '../../support/until';

let server: Server;
let requests: IncomingMessage[];
let client: Socket;

beforeEach(async () => {
  requests = [];
  server = createServer((request) => void requests.push(request));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => {
  client.destroy();
  server.close();
});

/** Sends the head of a request and the beginning of its body. */
async function arrived(head: string, body = ''): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  client = connect(port, '127.0.0.1', () => {
    client.write(`POST / HTTP/1.1\r\nhost: x\r\n${head}\r\n\r\n${body}`);
  });
  client.on('error', () => undefined);
  await until(() => requests.length === 1, 5_000, 'the request', 2);
  return requests[0]!;
}

function collected(raw: IncomingMessage, maxBytes = 1_000) {
  const bodies: (Buffer | NightshiftError)[] = [];
  const request = { raw, bodyPlace: null } as FastifyRequest;
  collectBody(request, maxBytes, (body) => bodies.push(body));
  return bodies;
}

it('collects a body that arrives in pieces', async () => {
  const bodies = collected(await arrived('content-length: 6', 'abc'));
  client.write('def');
  await until(() => bodies.length > 0, 5_000, 'the body', 2);
  expect(bodies).toEqual([Buffer.from('abcdef')]);
});

it.each(['content-length: 6', 'transfer-encoding: chunked'])(
  'calls back once if the client hangs up within a body with %s',
  async (head) => {
    const raw = await arrived(head, '3\r\nabc\r\n'.slice(head.startsWith('content') ? 3 : 0));
    const bodies = collected(raw);
    client.destroy();
    await until(() => raw.closed, 5_000, 'the end of the connection', 2);
    expect(bodies).toMatchObject([{ code: 'invalid_request' }]);
  },
);

it('calls back if the client hung up before anything was read', async () => {
  const raw = await arrived('content-length: 6', 'abc');
  client.destroy();
  await until(() => raw.closed, 5_000, 'the end of the connection', 2);
  expect(collected(raw)).toMatchObject([{ code: 'invalid_request' }]);
});

it('reads and drops the rest of a body that is too large', async () => {
  const raw = await arrived('transfer-encoding: chunked', `3e9\r\n${'x'.repeat(1_001)}\r\n`);
  const bodies = collected(raw);
  await until(() => bodies.length > 0, 5_000, 'the refusal', 2);
  client.write('1\r\nx\r\n0\r\n\r\n');
  await until(() => raw.complete && raw.readableEnded, 5_000, 'the end of the body', 2);
  expect(bodies).toMatchObject([{ code: 'payload_too_large' }]);
});
