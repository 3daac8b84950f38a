import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { TestDatabase } from './postgres';
import { withDatabase } from './postgres';
import type { TestStack } from './stack';
import { startStack } from './stack';
import type { TcpProxy } from './tcp-proxy';
import { startTcpProxy } from './tcp-proxy';
import { startTemporal } from './temporal';

/** A whole stack whose Temporal and Postgres can be taken away from it, but not from the test. */
export interface ProxiedStack {
  readonly stack: TestStack;
  readonly temporalProxy: TcpProxy;
  readonly postgresProxy: TcpProxy;
  /** Past the proxy. */
  readonly temporal: Client;
  /** Past the proxy. */
  readonly database: TestDatabase;
  /** Values of a metric of a part, one line each. */
  metric(part: 'api' | 'worker', name: string): Promise<string[]>;
  logOf(part: string): string;
  /** The file that says how the parts are set up. */
  readonly configFile: string;
  close(): Promise<void>;
}

/** Starts API, worker and supervisor; Temporal and Postgres are those of the Jest run. */
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
  const configFile = join(stack.dataDir, 'run', 'config.json');
  return {
    ...{ stack, temporalProxy, postgresProxy, database, configFile },
    temporal: new Client({ connection, namespace }),
    metric: (part, name) => readMetric(configFile, part, name),
    logOf: (part) => readFileSync(join(stack.dataDir, 'logs', `${part}.log`), 'utf8'),
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

async function readMetric(
  configFile: string,
  part: 'api' | 'worker',
  name: string,
): Promise<string[]> {
  const settings = JSON.parse(readFileSync(configFile, 'utf8')) as Record<
    typeof part,
    { observability_port: number }
  >;
  const text = await (
    await fetch(`http://127.0.0.1:${settings[part].observability_port}/metrics`)
  ).text();
  return text.split('\n').filter((line) => line.startsWith(name));
}
