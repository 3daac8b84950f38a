import { createServer } from 'node:net';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { listenFault } from '../../platform/listen-fault';
import { lockFile, type HeldLock, type LostLock } from './lock-file';
import { makePrivateFolder, privateFolder } from './private-folder';

const HIGHEST_PORT = 65_535;
const TRIES = 200;

/** Whether a server could listen there now. @throws config_invalid where nobody ever could */
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

/** Hands out ports of one stack: never the same twice, never one that somebody listens on. */
export interface PortPicker {
  /** `wanted`, or the next free one above it, on `host`. @throws port_in_use where none is left */
  next(host: string, wanted: number): Promise<number>;
  /** Exactly `port`. @throws port_in_use with `hint`, what to change */
  exactly(host: string, port: number, hint: string): Promise<number>;
  /** Lets other stacks have the ports again. */
  release(): void;
}

/**
 * A picker whose ports are claimed by a file each in `claims`: between looking for a free port and
 * listening on it, another stack that the same user starts at the same time must not choose it too.
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
      const highest = Math.min(wanted + TRIES, HIGHEST_PORT);
      for (let port = Math.max(wanted, 1); port <= highest; port++) {
        if (await take(host, port)) return port;
      }
      throw new NightshiftError('port_in_use', `no free port between ${wanted} and ${highest}`);
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

/** `null` where claims cannot be written: the picker then does without. */
function tryClaim(claims: string | undefined, port: number): HeldLock | LostLock | null {
  try {
    const folder =
      claims === undefined ? privateFolder('nightshift-ports') : makePrivateFolder(claims);
    return lockFile(join(folder, String(port)));
  } catch {
    return null;
  }
}
