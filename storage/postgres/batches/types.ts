import type { RequestCounts, Usage } from '../../../core/batch/counts';
import type { TriedRow } from '../../../core/batch/last-resort';
import type { OrphanRow } from '../../../core/batch/orphans';
import type { BatchStatus, StopCause, TerminalStatus } from '../../../core/batch/status';
import type { TraceContext } from '../../../core/batch/trace-context';
import type { SealedHeaders } from '../../../platform/header-vault';

/**
 * A row of `batches`, for the API and for the steps of its workflow. Times are Unix seconds.
 * (docs/design/read-model.md#batch-rows)
 */
export interface BatchRow {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputFileId: string;
  /** Null if there was no usable file when the batch was created. */
  readonly inputObjectKey: string | null;
  readonly inputBytes: number | null;
  readonly completionWindow: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Life of the result files, seconds from their creation; null means the configured one. */
  readonly outputExpiresAfterSec: number | null;
  /** Its requests carry headers of the create call, kept in `batch_headers`. */
  readonly passesHeaders: boolean;
  /** Null if the create call was not traced. */
  readonly traceContext: TraceContext | null;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
  readonly model: string | null;
  readonly counts: RequestCounts;
  readonly usage: Usage;
  /** OpenAI's list object of input errors, written when the batch ends. */
  readonly errors: unknown;
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  readonly inProgressAtSec: number | null;
  readonly finalizingAtSec: number | null;
  readonly completedAtSec: number | null;
  readonly failedAtSec: number | null;
  readonly expiredAtSec: number | null;
  readonly cancellingAtSec: number | null;
  readonly cancelledAtSec: number | null;
}

/** The columns of a batch that its workflow starts with. */
export type BatchToStart = Pick<
  BatchRow,
  'id' | 'tenant' | 'endpoint' | 'inputFileId' | 'expiresAtSec'
>;

/**
 * The columns of an open batch that reconcile needs. It reads 10,000 rows at a time, and metadata and errors
 * of so many batches would not fit into memory.
 */
export interface OpenBatch extends OrphanRow, TriedRow, BatchToStart {
  /** Number in the order of insertion; the cursor of pages. */
  readonly seq: number;
  readonly status: BatchStatus;
  /** How long reconcile has seen it past its deadline and grace. */
  readonly overdueMs: number;
  /** When its workflow was first seen as started. */
  readonly startedAtSec: number | null;
}

/** An open batch in the hands of a worker, dead or alive. */
export interface HeldBatch {
  readonly id: string;
  readonly status: BatchStatus;
  /** Name of the worker. */
  readonly holder: string;
}

/** The end of a batch, as the statement found it that wrote it. Durations in seconds. */
export interface EndedBatch {
  readonly status: TerminalStatus;
  /** The input file was refused. */
  readonly refused: boolean;
  readonly requests: number;
  /** The phase in which the end found the batch; `queued` if nothing could be sent yet. */
  readonly phase: 'queued' | 'in_progress' | 'finalizing';
  /** Since the creation. */
  readonly ageSec: number;
  /** Since the start of the first ingestion; null if there was none. */
  readonly processingSec: number | null;
}

/**
 * Status and cause of the row after a statement. The workflow obeys them, even if another process set them.
 * `found` is false if there is no row (docs/design/read-model.md#row-verdict).
 */
export interface BatchState {
  readonly found: boolean;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
}

/** A batch to be inserted as `validating`; times in Unix seconds. */
export interface NewBatch extends Pick<
  BatchRow,
  | 'id'
  | 'tenant'
  | 'endpoint'
  | 'inputFileId'
  | 'completionWindow'
  | 'metadata'
  | 'outputExpiresAfterSec'
  | 'createdAtSec'
  | 'expiresAtSec'
> {
  /** Headers to send with each request, encrypted. */
  readonly headers?: SealedHeaders | undefined;
  readonly traceContext?: TraceContext | null;
}

/** A page of a tenant's batches, newest first. */
export interface BatchQuery {
  readonly tenant: string;
  readonly limit: number;
  /** Id of the last batch of the previous page. */
  readonly after?: string;
}

/** The outcome of a cancel. `claimed` is false if the row had a cause or had ended; then it is unchanged. */
export interface CancelClaim {
  readonly claimed: boolean;
  readonly batch: BatchRow;
}

/** A phase of a running batch; fields that are left out stay as they are. */
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
  /** The model that all answers name, else the model that all lines name; null if there are several. */
  readonly model: string | null;
  readonly outputFile: ResultFile | null;
  readonly errorFile: ResultFile | null;
  /** Entries of `errors.data` if the input file was refused; otherwise null. */
  readonly errors: readonly ErrorEntry[] | null;
}

/** A result file in the object store that gets a row. */
export interface ResultFile {
  readonly id: string;
  readonly bytes: number;
  readonly filename: string;
  readonly objectKey: string;
}

/** One entry of a batch's `errors.data`. */
export interface ErrorEntry {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}
