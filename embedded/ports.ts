import { createServer } from 'node:net';
import { GatewayError } from '../core/errors';

const HIGHEST_PORT = 65_535;
const TRIES = 200;

/** Whether a server could listen there now. */
export function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false);
      else reject(error);
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Hands out ports of one stack: never the same twice, never one that somebody listens on. */
export interface PortPicker {
  /** `wanted`, or the next free one above it. @throws port_in_use where none is left */
  next(wanted: number): Promise<number>;
  /** Exactly `port`. @throws port_in_use with `hint`, what to change */
  exactly(port: number, hint: string): Promise<number>;
}

/** A picker for ports on `host`; those `taken` elsewhere in the stack are never handed out. */
export function createPortPicker(host: string, taken: readonly number[] = []): PortPicker {
  const given = new Set<number>(taken);
  const take = async (port: number): Promise<boolean> => {
    if (given.has(port) || !(await isFree(host, port))) return false;
    given.add(port);
    return true;
  };
  return {
    async next(wanted) {
      const highest = Math.min(wanted + TRIES, HIGHEST_PORT);
      for (let port = Math.max(wanted, 1); port <= highest; port++) {
        if (await take(port)) return port;
      }
      throw new GatewayError('port_in_use', `no free port between ${wanted} and ${highest}`);
    },
    async exactly(port, hint) {
      if (await take(port)) return port;
      throw new GatewayError('port_in_use', `port ${port} on ${host} is in use: ${hint}`);
    },
  };
}
