import type { LineIndex } from '../../core/openai/line-index';
import type { Config } from '../../platform/config-schema';
import type { ObjectStore } from '../../storage/object-store';
import type { PinnedFile } from '../../storage/postgres/batches/pin-files';
import type { Heartbeat } from '../runtime/heartbeat';
import type { IngestAttempt } from './ingest-attempt';
import type { ScanGate } from './scan-gate';

/** What ingestion needs of its process. */
export interface IngestDeps {
  readonly store: ObjectStore;
  readonly batches: BatchInputs;
  /** Whether some worker can send `model`, answered from memory. Always true with a global gateway. */
  isRouted(model: string): boolean;
  /** Reads the announcements of all workers for `isRouted`. @throws postgres_unavailable */
  refreshRoutes?(): Promise<void>;
  /** Counts the batch's requests against its tenant's limit; false if they exceed it. */
  enqueue?(batchId: string, requests: number): Promise<boolean>;
  /**
   * Looks up files that requests of the batch name, and pins those that its tenant has. Undefined: none is found.
   * @throws postgres_unavailable
   */
  pinFiles?(batchId: string, fileIds: readonly string[]): Promise<readonly PinnedFile[]>;
  /** Writes what the store must know of the batch before its first request is sent. */
  record?(batchId: string): Promise<void>;
  /** Shared by all scans of the process. Null or undefined: every line is parsed. */
  readonly lineIndex?: LineIndex | null;
  /** The version of the product, whose indexes of files are used. Undefined: every file is read. */
  readonly release?: string;
  /** Time after which the server has the latest heartbeat, ms. */
  readonly announceMs?: number;
  readonly limits: Config['limits'];
  readonly batch: Config['batch'];
}

/** Looks up the input of a batch. */
export interface BatchInputs {
  /** Null if there is no such batch. */
  input(batchId: string): Promise<BatchInput | null>;
}

/** The columns of a batch's row that ingestion reads. */
export interface BatchInput {
  readonly endpoint: string;
  /** Null if there was no usable file when the batch was created. */
  readonly inputObjectKey: string | null;
  readonly inputBytes: number | null;
}

/** One attempt, and what it shares with other attempts in its process. */
export interface Ingestion {
  readonly deps: IngestDeps;
  readonly batchId: string;
  readonly heartbeat: Heartbeat;
  readonly attempt: IngestAttempt;
  readonly gate: ScanGate;
  /** How many models without a route get a plan. */
  readonly maxUndecided: number;
}
