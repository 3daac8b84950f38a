import { Client, Connection } from '@temporalio/client';
import type { TestDatabase } from '../support/postgres';
import { withDatabase } from '../support/postgres';
import type { TestStack } from '../support/stack';
import { startStack } from '../support/stack';
import type { TcpProxy } from '../support/tcp-proxy';
import { startTcpProxy } from '../support/tcp-proxy';
import { startTemporal } from '../support/temporal';

/** A whole stack with proxies before its Temporal and PostgreSQL, which the test itself reaches directly. */
export interface ProxiedStack {
  readonly stack: TestStack;
  readonly temporalProxy: TcpProxy;
  readonly postgresProxy: TcpProxy;
  /** Not through the proxy. */
  readonly temporal: Client;
  /** Not through the proxy. */
  readonly database: TestDatabase;
  close(): Promise<void>;
}

/** Starts API, worker and supervisor. Temporal and PostgreSQL are the shared ones of the Jest run. */
export async function startProxiedStack(config: Record<string, unknown>): Promise<ProxiedStack> {
  const [server, database] = await Promise.all([startTemporal(), withDatabase()]);
  const url = new URL(database.url);
  const temporalProxy = await startTcpProxy(Number(server.address.split(':')[1]));
  const postgresProxy = await startTcpProxy(Number(url.port));
  url.port = String(postgresProxy.port);
  const { namespace } = server;
  const stack = await startStack({
    config: {
      ...config,
      temporal: { address: `127.0.0.1:${temporalProxy.port}`, namespace },
      postgres: { url: url.href },
    },
  });
  const connection = await Connection.connect({ address: server.address });
  return {
    ...{ stack, temporalProxy, postgresProxy, database },
    temporal: new Client({ connection, namespace }),
    close: async () => {
      await Promise.all([temporalProxy.become('pass'), postgresProxy.become('pass')]);
      await stack.stop();
      stack.remove();
      await connection.close();
      await Promise.all([temporalProxy.close(), postgresProxy.close()]);
      await database.close();
    },
  };
}
