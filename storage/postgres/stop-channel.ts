import { Client } from 'pg';
import type { Logger } from '../../platform/logger';

/**
 * Notifies workers of a claimed stop at once (docs/design/read-model.md#stop-notices). It only makes a
 * cancel faster: a worker that misses it learns of the stop with its next progress tick, within a second.
 */
const CHANNEL = 'nightshift_stop';

/** SQL that notifies the channel of a batch when the transaction commits; the id is an SQL expression. */
export function notifyStop(batchId: string): string {
  return `pg_notify('${CHANNEL}', ${batchId})`;
}

/** A listener that reconnects until it is closed. */
export interface StopListener {
  close(): Promise<void>;
}

const RECONNECT_MS = 1_000;

/**
 * Calls `onStop` for each claimed stop. Listens on a connection of its own, which must not go through a
 * transaction pooler, and reconnects whenever it is lost.
 */
export function listenForStops(options: {
  readonly url: string;
  readonly logger: Logger;
  readonly onStop: (batchId: string) => void;
}): StopListener {
  const { url, logger, onStop } = options;
  let client: Client | null = null;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const reconnectLater = (): void => {
    client = null;
    if (closed || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      void connect();
    }, RECONNECT_MS);
    timer.unref();
  };
  const connect = async (): Promise<void> => {
    const fresh = new Client({ connectionString: url, keepAlive: true });
    client = fresh;
    // The client emits `end` after a failed connect, a lost connection, and a call of `end()`.
    fresh.on('error', (error) => logger.debug({ err: error }, 'stop channel lost'));
    fresh.on('end', reconnectLater);
    fresh.on('notification', ({ payload }) => onStop(payload ?? ''));
    try {
      await fresh.connect();
      await fresh.query(`listen ${CHANNEL}`);
    } catch (error) {
      logger.debug({ err: error }, 'stop channel not open');
      // Otherwise, a server that accepts connections but refuses `listen` would keep one per attempt.
      await fresh.end();
    }
  };
  void connect();
  return {
    close: async () => {
      closed = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}
