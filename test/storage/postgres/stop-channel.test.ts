import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import pino from 'pino';
import { listenForStops } from '../../../storage/postgres/stop-channel';
import { until } from '../../support/until';

const AUTHENTICATED = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** The answer of a standby to `listen`. */
function refusal(): Buffer {
  const fields = Buffer.from('SERROR\0C25006\0Mcannot execute LISTEN during recovery\0\0');
  const head = Buffer.from([0x45, 0, 0, 0, 4 + fields.length]);
  return Buffer.concat([head, fields, READY]);
}

/** A server that accepts every user and refuses every statement. */
function speakPostgres(socket: Socket): void {
  socket.once('data', () => {
    socket.write(Buffer.concat([AUTHENTICATED, READY]));
    socket.on('data', (bytes) => void (bytes[0] === 0x51 && socket.write(refusal())));
  });
}

it('leaves no connection open if the server accepts it but refuses to listen', async () => {
  let seen = 0;
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    seen++;
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => undefined);
    speakPostgres(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const listener = listenForStops({
    url: `postgres://u@127.0.0.1:${port}/d`,
    logger: pino({ level: 'silent' }),
    onStop: () => undefined,
  });
  await until(() => seen >= 3, 20_000, 'further attempts');
  expect(open.size).toBeLessThanOrEqual(1);
  await listener.close();
  await until(() => open.size === 0, 5_000, 'the end of all connections');
  server.close();
}, 30_000);
