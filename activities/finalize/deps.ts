import type { JournalStore } from '../../storage/journal/journal-store';
import type { ObjectStore } from '../../storage/object-store';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { BatchRow } from '../../storage/postgres/batches/types';
import type { ResultDraft } from './result-draft';

/** What finalization reads and writes. */
export interface FinalizeDeps {
  readonly store: ObjectStore;
  readonly journal: JournalStore;
  readonly batches: BatchesToFinalize;
  /** Result files that this process has begun. */
  readonly drafts: FoundDrafts;
  /** Folder name of a tenant's files. */
  tenantHash(tenant: string): string;
}

/** Where finalization finds a draft of its files. */
export interface FoundDrafts {
  /** The draft of a batch, which is the caller's from now on; null if there is none. */
  take(batchId: string): Promise<ResultDraft | null>;
}

/** The rows of batches as finalization uses them. */
export interface BatchesToFinalize extends Pick<BatchRepository, 'recordEnd' | 'recordPhase'> {
  /** Null if there is no such batch. */
  find(batchId: string): Promise<BatchToFinalize | null>;
}

/** What finalization reads of a batch's row. */
export type BatchToFinalize = Pick<BatchRow, 'tenant' | 'inputObjectKey' | 'status' | 'stopCause'>;

/** Progress of an attempt, for its heartbeats. */
export interface FinalizeProgress {
  /** Bytes of answers merged so far. */
  bytes: number;
  /** Throws when the attempt must end. */
  check(): void;
}
