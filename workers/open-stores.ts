import type { Config } from '../platform/config';
import type { Logger } from '../platform/logger';
import type { StartWait } from '../platform/start-wait';
import type { Tracing } from '../platform/tracing/tracing';
import type { WorkerMetrics } from '../platform/worker-metrics';
import { countOperations } from '../storage/objects/count-operations';
import { openCheckedStorage } from '../storage/open-checked-storage';
import type { Storage, StorageOptions } from '../storage/open-storage';
import { openPool } from '../storage/postgres/pool';

type Pool = ReturnType<typeof openPool>;

/** The object store and PostgreSQL, as a worker uses them. */
export interface WorkerStores {
  readonly storage: Storage;
  readonly pool: Pool;
  /** For the statements of the progress tick. */
  readonly progressPool: Pool;
  readonly release: readonly { name: string; run(): Promise<void> }[];
}

interface StoreContext {
  readonly logger: Logger;
  readonly metrics: WorkerMetrics;
  readonly tracing: Tracing | null;
  readonly wait: Pick<StartWait, 'until'>;
}

/** Statements of the progress tick time out early, because chunks can go on without their result. */
const PROGRESS_TIMEOUT_MS = 2_000;
const STATEMENT_TIMEOUT_MS = 10_000;

/**
 * Opens the stores of a worker and waits for those that are away. The caller runs `release` in the end.
 * @throws schema_outdated, schema_newer, store_mismatch, config_invalid, postgres_unavailable,
 *   object_store_failed
 */
export async function openStores(config: Config, context: StoreContext): Promise<WorkerStores> {
  const { pool, progressPool, closePools } = openPools(config.postgres.url, context.logger);
  const { wait } = context;
  try {
    const options = { ...storageOptions(context), pool, wait };
    const storage = await openCheckedStorage(config.object_store, options);
    const release = [
      { name: 'object store', run: () => storage.close() },
      { name: 'postgres', run: closePools },
    ];
    return { storage, pool, progressPool, release };
  } catch (error) {
    await closePools();
    throw error;
  }
}

function storageOptions({ logger, metrics, tracing }: StoreContext): StorageOptions {
  // Chunks, the journal and Temporal repeat operations that fail.
  const observe = countOperations(metrics.fileStorageOperations, 'processor', () => 'retry');
  const onFlushed = (tookMs: number): void => metrics.journalFlush.observe(tookMs / 1000);
  return { logger, observe, onFlushed, tracing };
}

function openPools(url: string, logger: Logger) {
  const hasty = { statementTimeoutMs: PROGRESS_TIMEOUT_MS, connectTimeoutMs: PROGRESS_TIMEOUT_MS };
  const pool = openPool(url, { statementTimeoutMs: STATEMENT_TIMEOUT_MS, logger });
  const progressPool = openPool(url, { ...hasty, max: 4, logger });
  const closePools = async (): Promise<void> => {
    await Promise.all([pool.end(), progressPool.end()]);
  };
  return { pool, progressPool, closePools };
}
