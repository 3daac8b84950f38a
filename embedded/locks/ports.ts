import { createServer } from 'node:net';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { listenFault } from '../../platform/listen-fault';
import { lockFile, type HeldLock, type LostLock } from './lock-file';
import { makePrivateFolder, privateFolder } from './private-folder';

const HIGHEST_PORT = 65_535;
const PORTS_TRIED = 200;

/** Whether a server could listen there now. @throws config_invalid if it never could, as on an unknown host */
export function isFree(
  host: string,
  port: number,
  portSetting: string = 'api.port (--port)',
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false);
      else
        reject(listenFault(error, { host, port, portSetting, hostSetting: 'api.host (--host)' }));
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Hands out the ports of one stack: none twice, and none that a program listens on. */
export interface PortPicker {
  /** `wanted` on `host`, or the next free port above it. @throws port_in_use if none is free */
  next(host: string, wanted: number): Promise<number>;
  /** Exactly `port`. @throws port_in_use with `hint`, which says what to change */
  exactly(host: string, port: number, hint: string): Promise<number>;
  /** Gives up the claims, so that other stacks can choose the ports. */
  release(): void;
}

/**
 * A picker that claims each port with a lock file in `claims`. Some time passes between the check that a
 * port is free and the moment when a component listens on it. Without claims, another stack of the same
 * user could choose the port in that time (docs/design/embedded-stack.md#ports).
 */
export function createPortPicker(claims?: string): PortPicker {
  const given = new Map<number, HeldLock | null>();
  const take = async (host: string, port: number): Promise<boolean> => {
    if (given.has(port) || !(await isFree(host, port))) return false;
    const claim = tryClaim(claims, port);
    if (claim?.kind === 'lost') return false;
    given.set(port, claim);
    return true;
  };
  return {
    async next(host, wanted) {
      const highest = Math.min(wanted + PORTS_TRIED, HIGHEST_PORT);
      for (let port = Math.max(wanted, 1); port <= highest; port++) {
        if (await take(host, port)) return port;
      }
      throw new NightshiftError(
        'port_in_use',
        `no port between ${wanted} and ${highest} on ${host} is free: stop a process that listens there`,
      );
    },
    async exactly(host, port, hint) {
      if (await take(host, port)) return port;
      throw new NightshiftError('port_in_use', `port ${port} on ${host} is in use: ${hint}`);
    },
    release() {
      for (const claim of given.values()) claim?.release();
      given.clear();
    },
  };
}

/** `null` if claims cannot be written: the port is used without one. */
function tryClaim(claims: string | undefined, port: number): HeldLock | LostLock | null {
  try {
    const folder =
      claims === undefined ? privateFolder('nightshift-ports') : makePrivateFolder(claims);
    return lockFile(join(folder, String(port)));
  } catch {
    return null;
  }
}
