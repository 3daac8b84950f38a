import type { RequestCounts, Usage } from '../../core/batch/counts';
import type { StopCause, TerminalStatus } from '../../core/batch/status';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { ObjectStore } from '../../storage/object-store';

/** What finalization needs of the house. */
export interface FinalizeDeps {
  readonly store: ObjectStore;
  readonly journal: JournalStore;
  readonly batches: FinalizableBatches;
  readonly record: TerminalRecords;
  /** Folder name of a tenant's files. */
  tenantHash(tenant: string): string;
}

/** Where a batch's row says whose it is and what it reads. */
export interface FinalizableBatches {
  /** Null where there is no such batch. */
  forFinalize(batchId: string): Promise<FinalizableBatch | null>;
}

/** The part of a batch's row that finalization reads. */
export interface FinalizableBatch {
  readonly tenant: string;
  readonly inputObjectKey: string | null;
}

/** Where the end of a batch is written. */
export interface TerminalRecords {
  /**
   * Writes file rows and the terminal row in one transaction; the row's own stop cause decides which
   * status that is. A terminal row stays as it is and its status is answered.
   */
  writeTerminal(record: TerminalRecord): Promise<TerminalStatus>;
}

/** The end of a batch, as its objects tell it. */
export interface TerminalRecord {
  readonly batchId: string;
  readonly cause: StopCause | null;
  readonly counts: RequestCounts;
  readonly usage: Usage;
  /** The model that all answers name, else the one that all lines name; null for several. */
  readonly model: string | null;
  readonly outputFile: ResultFile | null;
  readonly errorFile: ResultFile | null;
  /** Why the input was refused, else null. */
  readonly errors: readonly ErrorEntry[] | null;
}

/** A result file that is written and durable. */
export interface ResultFile {
  readonly id: string;
  readonly bytes: number;
  readonly filename: string;
  readonly objectKey: string;
}

/** One entry of `errors.data`. */
export interface ErrorEntry {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}
