import { Client } from 'pg';
import type { Logger } from '../../platform/logger';

/**
 * Tells workers of a claimed stop at once (execution §4). It only makes a cancel faster: whoever
 * misses it learns of the stop with the next progress tick, a second later.
 */
const CHANNEL = 'nightshift_stop';

/** SQL that tells the channel of the batch in `$n` when its transaction commits. */
export function notifyStop(batchIdParameter: string): string {
  return `pg_notify('${CHANNEL}', ${batchIdParameter})`;
}

/** A listener that keeps itself connected until it is closed. */
export interface StopListener {
  close(): Promise<void>;
}

const RECONNECT_MS = 1_000;

/**
 * Listens on a connection of its own (not through a transaction pooler) and calls `onStop` for each
 * claimed stop; connects again whenever the connection is lost.
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

  const again = (): void => {
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
    // `end` follows whatever ends it: a failed connect, a lost connection, an `end()`.
    fresh.on('error', (error) => logger.debug({ err: error }, 'stop channel lost'));
    fresh.on('end', again);
    fresh.on('notification', ({ payload }) => onStop(payload ?? ''));
    try {
      await fresh.connect();
      await fresh.query(`listen ${CHANNEL}`);
    } catch (error) {
      logger.debug({ err: error }, 'stop channel not open');
      // A server that lets us in and not listen would keep every attempt's connection.
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
