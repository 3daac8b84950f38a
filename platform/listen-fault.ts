import { NightshiftError } from '../core/errors';

/** Where a server was to listen, and the settings that say so. */
export interface ListenPlace {
  readonly host: string;
  readonly port: number;
  /** Setting of the host; `api.host` where left out. */
  readonly hostSetting?: string;
  /** Setting of the port, such as `worker.observability_port`. */
  readonly portSetting: string;
}

/** Calls in which the system refuses an address; all else is no fault of the settings. */
const CALLS = ['listen', 'bind', 'getaddrinfo'];

/**
 * What `listen` failed with, in the words of the settings: `port_in_use` where somebody has the port
 * already, `config_invalid` where the host is none of this machine or the port is not ours to take.
 * Anything else comes back as it is.
 */
export function listenFault(error: NodeJS.ErrnoException, place: ListenPlace): Error {
  const { host, port, hostSetting = 'api.host', portSetting } = place;
  const { code = 'unknown', syscall = '' } = error;
  if (code === 'EADDRINUSE') {
    const message = `port ${port} is in use: stop whoever listens on it, or set ${portSetting} to a free one`;
    return new NightshiftError('port_in_use', message, { cause: error });
  }
  if (!CALLS.includes(syscall)) return error;
  const message =
    code === 'EACCES'
      ? `${portSetting}: this user may not listen on port ${port} (${code}): set it to 1024 or above, or allow it to the user`
      : `${hostSetting}: ${hostFault(host, code)}: set it to an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all`;
  return new NightshiftError('config_invalid', message, { cause: error });
}

function hostFault(host: string, code: string): string {
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${JSON.stringify(host)} is a name that leads to no address (${code})`;
    case 'EADDRNOTAVAIL':
      return `${JSON.stringify(host)} is no address of this machine (${code})`;
    default:
      return `nothing can listen on ${JSON.stringify(host)} (${code})`;
  }
}
