import type { TemporalConfig } from './temporal-credentials';
import { openConnection } from './reloading-connection';

/** Checks whether Temporal answers. */
export interface TemporalPing {
  /** Resolves when the server answers. @throws the SDK's error, within two seconds */
  ask(): Promise<void>;
  close(): Promise<void>;
}

const ANSWER_MS = 2_000;

/**
 * A ping over its own connection, which is made at the first call. Failed calls are not retried, because a
 * retry that the SDK has scheduled crashes the process if the connection is closed first.
 */
export function openTemporalPing(config: TemporalConfig): TemporalPing {
  const connection = openConnection(config, { interceptors: [] });
  const ask = () => connection.workflowService.getSystemInfo({});
  return {
    ask: async () => void (await connection.withDeadline(Date.now() + ANSWER_MS, ask)),
    close: () => connection.close(),
  };
}
