import { randomBytes } from 'node:crypto';
import pino from 'pino';
import { batchIdFromBytes } from '../../../core/names/ids';
import type { ProgressOptions, ProgressReporter } from '../../../storage/postgres/progress';
import { createProgressReporter } from '../../../storage/postgres/progress';
import type { TestDatabase } from '../../support/postgres';
import { POSTGRES_START_MS, withDatabase } from '../../support/postgres';

/** A database with batches, and reporters of several workers on it. */
export interface ProgressScene {
  readonly database: TestDatabase;
  /** A reporter that ticks every 50 ms. */
  reporter(worker: string, options?: Partial<ProgressOptions>): ProgressReporter;
  /** Inserts a batch in progress with so many lines. */
  newBatch(total?: number): Promise<string>;
  /** The counts that clients see; -1 if there is no such batch. */
  counts(id: string): Promise<{ completed: number; failed: number }>;
  /** Closes all reporters, which also happens after the last test. */
  closeReporters(): Promise<void>;
}

/** Opens the database before the tests of a file and closes everything after them. */
export function useProgress(): ProgressScene {
  const scene = {} as { database: TestDatabase };
  const open: ProgressReporter[] = [];
  const closeReporters = async (): Promise<void> => {
    await Promise.all(open.splice(0).map((reporter) => reporter.close()));
  };
  beforeAll(async () => {
    scene.database = await withDatabase();
  }, POSTGRES_START_MS);
  afterAll(async () => {
    await closeReporters();
    await scene.database?.close();
  });
  return Object.assign(scene, {
    closeReporters,
    reporter: (worker: string, options: Partial<ProgressOptions> = {}) => {
      const logger = pino({ level: 'silent' });
      const { pool } = scene.database;
      const created = createProgressReporter({ pool, worker, intervalMs: 50, logger, ...options });
      open.push(created);
      return created;
    },
    newBatch: async (total = 10) => {
      const id = batchIdFromBytes(randomBytes(16));
      await scene.database.pool.query(
        `insert into batches (id, tenant, endpoint, input_file_id, completion_window, created_at, expires_at, total, status)
         values ($1, 't', '/v1/embeddings', 'file-x', '24h', 1, 2, $2, 'in_progress')`,
        [id, total],
      );
      return id;
    },
    counts: async (id: string) => {
      const { rows } = await scene.database.pool.query<{ completed: number; failed: number }>(
        'select completed, failed from batches where id = $1',
        [id],
      );
      return rows[0] ?? { completed: -1, failed: -1 };
    },
  });
}
