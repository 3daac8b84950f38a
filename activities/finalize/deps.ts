import type { BatchStatus, StopCause, TerminalStatus } from '../../core/batch/status';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { ObjectStore } from '../../storage/object-store';
import type { TerminalRecord } from '../../storage/postgres/batches/records';

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
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
}

/** Where the end of a batch is written. */
export interface TerminalRecords {
  /**
   * Writes file rows and the terminal row in one transaction; the row's own stop cause decides which
   * status that is. A terminal row stays as it is and its status is answered.
   */
  writeTerminal(record: TerminalRecord): Promise<TerminalStatus>;
}
