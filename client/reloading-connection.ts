import { Connection } from '@temporalio/client';
import type { Client, ConnectionOptions } from '@temporalio/client';
import { connectionOptions } from './connection-options';
import { watchCredentials, type ReloadReports } from './credential-watch';
import {
  readCredentials,
  type TemporalConfig,
  type TemporalCredentials,
} from './temporal-credentials';

/** What a client needs of a connection. */
export type TemporalConnection = Client['connection'];

/** How a connection is made and watched. */
export interface OpenConnectionOptions extends ReloadReports {
  /** Replaces the SDK's interceptors, which retry failed calls. */
  readonly interceptors?: NonNullable<ConnectionOptions['interceptors']>;
  readonly everyMs?: number;
}

/** How long an old connection stays open for calls in flight: longer than a long poll. */
const OLD_CALLS_MS = 90_000;

/**
 * A connection that is made at its first call. When the files of its certificates change, new calls use a
 * new connection, and calls in flight finish on the old one. A new API key is sent from the next call on.
 * @throws config_invalid
 */
export function openConnection(
  config: TemporalConfig,
  options: OpenConnectionOptions = {},
): TemporalConnection {
  let credentials = readCredentials(config);
  const make = (): Connection => {
    const { interceptors } = options;
    return Connection.lazy({
      ...connectionOptions(config, credentials),
      ...(credentials.apiKey === null ? {} : { apiKey: () => credentials.apiKey ?? '' }),
      ...(interceptors === undefined ? {} : { interceptors }),
    });
  };
  const connections = { current: make(), old: new Map<Connection, NodeJS.Timeout>() };
  const use = (next: TemporalCredentials, { tls }: { readonly tls: boolean }): void => {
    credentials = next;
    if (!tls) return;
    retire(connections);
    connections.current = make();
  };
  const watch = watchCredentials({ config, initial: credentials, use, ...options });
  return asOne(connections, () => watch.close());
}

interface Connections {
  current: Connection;
  readonly old: Map<Connection, NodeJS.Timeout>;
}

function retire({ current, old }: Connections): void {
  const timer = setTimeout(() => {
    old.delete(current);
    void current.close().catch(() => undefined);
  }, OLD_CALLS_MS);
  timer.unref();
  old.set(current, timer);
}

/** One connection that passes every call to the newest one. */
function asOne(connections: Connections, stopWatching: () => void): TemporalConnection {
  return {
    get workflowService() {
      return connections.current.workflowService;
    },
    get operatorService() {
      return connections.current.operatorService;
    },
    get plugins() {
      return connections.current.plugins;
    },
    ensureConnected: () => connections.current.ensureConnected(),
    withDeadline: (deadline, call) => connections.current.withDeadline(deadline, call),
    withMetadata: (metadata, call) => connections.current.withMetadata(metadata, call),
    withAbortSignal: (signal, call) => connections.current.withAbortSignal(signal, call),
    close: async () => {
      stopWatching();
      for (const timer of connections.old.values()) clearTimeout(timer);
      const all = [connections.current, ...connections.old.keys()];
      await Promise.all(all.map((connection) => connection.close()));
    },
  };
}
