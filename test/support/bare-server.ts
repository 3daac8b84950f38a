/** Connections to a server of Node alone, with the limits of `http/connections`. */
import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import type { ClosedReason } from '../../http/connections/closed-reason';
import { type BodyRate, watchBodyRates } from '../../http/connections/body-rate';
import { addConnectionEvents } from '../../http/connections/connection-events';
import { limitConnections } from '../../http/connections/connection-limits';
import type { ConnectionLimits } from '../../http/connections/connection-table';

/** A server and what it was asked. */
export interface BareServer {
  readonly server: http.Server;
  readonly port: number;
  /** Why connections were closed, in order. */
  readonly closed: ClosedReason[];
  /** Answers to `/wait`, for a test to finish. */
  readonly open: http.ServerResponse[];
}

const servers: http.Server[] = [];
const sockets: net.Socket[] = [];
/** Closes everything that a test has opened. */
export async function closeBareServers(): Promise<void> {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** A server of Node with our limits, which answers `/wait` when a test does, and anything else when its body has arrived. */
export async function startBareServer(
  limits: Partial<ConnectionLimits>,
  rate?: BodyRate,
): Promise<BareServer> {
  const open: http.ServerResponse[] = [];
  const closed: ClosedReason[] = [];
  const onClosed = (reason: ClosedReason) => void closed.push(reason);
  const server = http.createServer((request, response) => {
    if (request.url === '/wait') open.push(response);
    else if (request.url === '/unread') request.once('end', () => response.end('read'));
    else request.resume().once('end', () => response.end('hello'));
  });
  addConnectionEvents(server, 1_000_000);
  const unlimited = { total: 1_000, perAddress: 1_000, perAddressSetting: 'a.setting' };
  limitConnections(server, { ...unlimited, ...limits }, onClosed);
  if (rate !== undefined) watchBodyRates(server, rate, onClosed);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return { server, port: (server.address() as AddressInfo).port, open, closed };
}

/** A client that writes bytes. */
export interface Client {
  readonly socket: net.Socket;
  text(): string;
  readonly closed: Promise<unknown>;
}

export function connect(port: number, bytes = '', localAddress = '127.0.0.1'): Client {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress });
  sockets.push(socket);
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  if (bytes !== '') socket.write(bytes);
  return { socket, text: () => text, closed: once(socket, 'close') };
}

export const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

export function errorIn(text: string): Record<string, unknown> {
  expect(text).toMatch(/x-request-id: req_[0-9a-f]{32}\r\n/);
  expect(text).toMatch(/content-type: application\/json/);
  return (JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as { error: never }).error;
}
