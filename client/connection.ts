import { Client } from '@temporalio/client';
import type { ReloadReports } from './credential-watch';
import { loadDataConverter } from './data-converter';
import { openConnection } from './reloading-connection';
import type { TemporalConfig } from './temporal-credentials';

/**
 * A client that connects at its first call, so that a process starts and answers while Temporal is away.
 * The caller closes `client.connection`. @throws config_invalid
 */
export function openClient(config: TemporalConfig, reports: ReloadReports = {}): Client {
  const dataConverter = loadDataConverter(config);
  return new Client({
    connection: openConnection(config, reports),
    namespace: config.namespace,
    ...(dataConverter === null ? {} : { dataConverter }),
  });
}
