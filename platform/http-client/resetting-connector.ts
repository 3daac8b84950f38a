import net from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { buildConnector } from 'undici';

type Connector = ReturnType<typeof buildConnector>;
type Callback = Parameters<Connector>[1];

/**
 * Connects as undici does, but resets a connection that is destroyed with an error, such as that of an aborted
 * request. A connection that is closed normally still sends what is in its buffers, so a server could receive
 * the rest of a request long after its caller has given up. After a reset, the kernel discards those bytes.
 *
 * @param connectTimeoutMs of TCP, and again of TLS
 */
export function resettingConnector(
  connectTimeoutMs: number,
  tls: Pick<ConnectionOptions, 'rejectUnauthorized' | 'ca' | 'cert' | 'key'>,
): Connector {
  const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false, ...tls });
  return (options, callback) => {
    if (options.protocol !== 'https:') return connect(options, resetting(null, callback));
    // Only a TCP socket can be reset, so TLS is put on top of one that is known.
    openTcp(options, connectTimeoutMs, (error, tcp) => {
      if (error !== null) callback(error, null);
      else connect({ ...options, httpSocket: tcp }, resetting(tcp, callback));
    });
  };
}

function openTcp(
  { hostname, port }: Parameters<Connector>[0],
  timeoutMs: number,
  callback: (error: Error | null, tcp: net.Socket) => void,
): void {
  const tcp = net.connect({ host: hostname, port: Number(port) || 443 });
  const timer = setTimeout(() => {
    tcp.destroy(new Error(`no connection to ${hostname} within ${timeoutMs} ms`));
  }, timeoutMs);
  let isReported = false;
  const report = (error: Error | null): void => {
    if (isReported) return;
    isReported = true;
    clearTimeout(timer);
    callback(error, tcp);
  };
  // The listener stays: an error of the TCP socket below TLS arrives here too.
  tcp.on('error', report);
  tcp.once('connect', () => report(null));
}

/** `callback`, with a socket whose `destroy` resets `tcp`, or itself if that is null. */
function resetting(tcp: net.Socket | null, callback: Callback): Callback {
  return (...result) => {
    // undici passes an error alone, despite its types.
    const socket = result[1] ?? null;
    if (socket !== null) resetOnError(socket, tcp ?? socket);
    callback(...result);
  };
}

function resetOnError(socket: net.Socket, tcp: net.Socket): void {
  const destroy = socket.destroy.bind(socket);
  socket.destroy = (error) => {
    // First: `resetAndDestroy` calls `destroy` of its own socket, which may be this one.
    socket.destroy = destroy;
    if (error !== undefined && !tcp.destroyed) tcp.resetAndDestroy();
    return destroy(error);
  };
}
