import type { Pool } from 'pg';
import type { RequestCounts, Usage } from '../../../core/batch/counts';
import type { BatchStatus, StopCause, TerminalStatus } from '../../../core/batch/status';
import { writeTerminal, writeUnfinalized } from './end';
import { claimStop, openRow, project } from './phases';
import type { RowVerdict } from './row-verdict';
import { inTransaction } from '../sql';

export type { RowVerdict } from './row-verdict';

/**
 * The workflow's side of the `batches` row: it alone writes lifecycle columns, always guarded by the
 * transition table, and never fails on zero rows but answers what the row says (execution §4).
 */
export interface BatchRecords {
  open(batchId: string): Promise<BatchRow | null>;
  /** Phase `in_progress` or `finalizing`; also keeps `total` right where the phase is not taken. */
  project(batchId: string, phase: PhaseUpdate): Promise<RowVerdict>;
  /** Claims the first cause of an end, or answers the one that is there. */
  claimStop(batchId: string, cause: StopCause): Promise<RowVerdict>;
  /** File rows and terminal status in one transaction; the row decides which status it is. */
  writeTerminal(record: TerminalRecord): Promise<TerminalStatus>;
  /** The end of a batch whose files could not be made: counts known from progress. */
  writeUnfinalized(batchId: string, cause: StopCause | null): Promise<RowVerdict>;
}

/** A batch as its workflow sees it; times in Unix seconds. */
export interface BatchRow {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputObjectKey: string | null;
  readonly inputBytes: number | null;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  /** Its requests carry headers of the create call. */
  readonly passesHeaders: boolean;
}

/** A step on the way; what is left out stays as it is. */
export interface PhaseUpdate {
  readonly status: 'in_progress' | 'finalizing';
  readonly total?: number;
  readonly model?: string | null;
  readonly models?: readonly string[];
}

/** The end of a batch with its files, written in one transaction. */
export interface TerminalRecord {
  readonly batchId: string;
  readonly cause: StopCause | null;
  readonly counts: RequestCounts;
  readonly usage: Usage;
  /** The model that all answers name, else the one that all lines name; null for several. */
  readonly model: string | null;
  readonly outputFile: ResultFile | null;
  readonly errorFile: ResultFile | null;
  /** Entries of `errors.data` where the input was refused. */
  readonly errors: readonly ErrorEntry[] | null;
}

/** A result file that lies in the object store and gets its row. */
export interface ResultFile {
  readonly id: string;
  readonly bytes: number;
  readonly filename: string;
  readonly objectKey: string;
}

/** One entry of a batch's `errors.data` as it is kept. */
export interface ErrorEntry {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}

export interface BatchRecordsOptions {
  /** Life of result files whose batch names none, seconds. */
  readonly outputFilesSec: number;
}

/** {@link BatchRecords} over a pool that the caller closes. All methods: @throws postgres_unavailable */
export function createBatchRecords(pool: Pool, options: BatchRecordsOptions): BatchRecords {
  return {
    open: (batchId) => openRow(pool, batchId),
    project: (batchId, phase) => project(pool, batchId, phase),
    claimStop: (batchId, cause) => claimStop(pool, batchId, cause),
    writeTerminal: (record) =>
      inTransaction(pool, (client) => writeTerminal(client, record, options)),
    writeUnfinalized: (batchId, cause) =>
      inTransaction(pool, (client) => writeUnfinalized(client, batchId, cause)),
  };
}
