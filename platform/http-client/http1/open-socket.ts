import net, { isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';

/** Where connections go. */
export interface SocketTarget {
  readonly url: URL;
  /** Time limit for TCP and TLS together, ms. */
  readonly connectTimeoutMs: number;
  readonly tls: Pick<ConnectionOptions, 'rejectUnauthorized' | 'ca' | 'cert' | 'key'>;
  /** TLS sessions of earlier connections, so that later ones need no full handshake. */
  readonly session: { latest: Buffer | null };
}

/** How long a connection may carry nothing before the kernel asks whether the other side still exists. */
const PROBE_AFTER_MS = 60_000;

/**
 * Begins to connect. The socket emits `connect` or `secureConnect` when it is ready; else it is destroyed with an error.
 * Bytes go to `onread`, which saves a buffer and events for each read.
 */
export function openSocket(target: SocketTarget, onread: OnReadOpts): Socket {
  const { url, connectTimeoutMs, tls, session } = target;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isTls = url.protocol === 'https:';
  const port = Number(url.port) || (isTls ? 443 : 80);
  const options = { host, port, onread, noDelay: true, keepAlive: true };
  const socket = isTls
    ? openTls()
    : net.connect({ ...options, keepAliveInitialDelay: PROBE_AFTER_MS });
  const timer = setTimeout(() => {
    socket.destroy(new Error(`no connection to ${url.host} within ${connectTimeoutMs} ms`));
  }, connectTimeoutMs);
  socket.once(isTls ? 'secureConnect' : 'connect', () => clearTimeout(timer));
  socket.once('close', () => clearTimeout(timer));
  return socket;

  function openTls(): TLSSocket {
    const secure = connectTls({
      ...options,
      ...tls,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(session.latest === null ? {} : { session: session.latest }),
      ALPNProtocols: ['http/1.1'],
    });
    secure.on('session', (latest) => (session.latest = latest));
    return secure.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS);
  }
}
