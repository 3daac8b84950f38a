import { NightshiftError } from '../core/errors';

/** The address that a server should listen on, and the names of its settings. */
export interface ListenPlace {
  readonly host: string;
  readonly port: number;
  /** Setting of the host; `api.host` by default. */
  readonly hostSetting?: string;
  /** Setting of the port, such as `worker.observability_port`. */
  readonly portSetting: string;
}

/** System calls that fail for a wrong address; settings do not cause errors of other calls. */
const CALLS = ['listen', 'bind', 'getaddrinfo'];

/**
 * Converts an error of `listen`: `port_in_use` if another process has the port, `config_invalid` if this
 * machine does not have the address or the port requires privileges (below 1024). Returns any other error
 * unchanged.
 */
export function listenFault(error: NodeJS.ErrnoException, place: ListenPlace): Error {
  const { host, port, hostSetting = 'api.host', portSetting } = place;
  const { code = 'unknown', syscall = '' } = error;
  if (code === 'EADDRINUSE') {
    const message = `port ${port} is already in use: stop the process that listens on it, or set ${portSetting} to a free port`;
    return new NightshiftError('port_in_use', message, { cause: error });
  }
  if (!CALLS.includes(syscall)) return error;
  const message =
    code === 'EACCES'
      ? `${portSetting}: listening on port ${port} requires privileges (${code}): set it to 1024 or above, or grant them to this user`
      : `${hostSetting}: ${hostFault(host, code)}: set it to an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all`;
  return new NightshiftError('config_invalid', message, { cause: error });
}

function hostFault(host: string, code: string): string {
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${JSON.stringify(host)} has no address in DNS (${code})`;
    case 'EADDRNOTAVAIL':
      return `${JSON.stringify(host)} is not an address of this machine (${code})`;
    default:
      return `nothing can listen on ${JSON.stringify(host)} (${code})`;
  }
}
