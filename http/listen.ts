import type { FastifyInstance } from 'fastify';
import { listenFault } from '../platform/listen-fault';
import type { Logger } from '../platform/logger';
import { openFilesFault, openFilesLimit } from '../platform/open-files';

/** The settings of a server of ours by which it listens. */
export interface ListenSettings {
  readonly host: string;
  readonly port: number;
  readonly max_connections: number;
}

/**
 * Listens as the settings of `section` say, and returns the base URL. Warns before that if the process may open
 * too few files for its connections. @throws config_invalid, port_in_use
 */
export async function listen(
  app: FastifyInstance,
  section: 'api' | 'gateway',
  { settings, logger }: { readonly settings: ListenSettings; readonly logger: Logger },
): Promise<string> {
  const { host, port, max_connections: connections } = settings;
  const limit = openFilesLimit();
  const fault = openFilesFault(limit, `${section}.max_connections`, connections);
  if (fault !== null) logger.warn({ limit, connections }, fault);
  try {
    // For `localhost` the framework opens a second server, to which none of our limits apply.
    return await app.listen({ host: host === 'localhost' ? '127.0.0.1' : host, port });
  } catch (error) {
    throw listenFault(error as NodeJS.ErrnoException, {
      ...{ host, port },
      portSetting: `${section}.port (--port)`,
      hostSetting: `${section}.host (--host)`,
    });
  }
}
