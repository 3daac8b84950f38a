import type { TemporalConfig } from './temporal-credentials';
import { openConnection } from './reloading-connection';

/** Asks whether Temporal answers. */
export interface TemporalPing {
  /** Resolves when the server answers. @throws the SDK's error, after two seconds at most */
  ask(): Promise<void>;
  close(): Promise<void>;
}

const ANSWER_MS = 2_000;

/**
 * A ping over a connection of its own, made at the first one. It tries nothing twice: a try that the SDK
 * has put off would end the process when the connection is closed meanwhile.
 */
export function openTemporalPing(config: TemporalConfig): TemporalPing {
  const connection = openConnection(config, { interceptors: [] });
  const ask = () => connection.workflowService.getSystemInfo({});
  return {
    ask: async () => void (await connection.withDeadline(Date.now() + ANSWER_MS, ask)),
    close: () => connection.close(),
  };
}
