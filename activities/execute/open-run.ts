import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ObjectReader } from '../../storage/object-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { Chunk } from './chunk';
import type { ChunkLedger } from './chunk-ledger';
import type { EarlyReads } from './early-reads';
import type { LineRun } from './line-run';

/** What an attempt has opened and read before its lines are settled. */
export interface RunContext {
  readonly chunk: Chunk;
  /** Which attempt of the chunk this is, from 1. */
  readonly attempt: number;
  /** After this time Temporal ends the attempt as failed, ms. */
  readonly attemptLimitMs: number;
  readonly lease: ChunkLease;
  readonly ledger: ChunkLedger;
  readonly writer: JournalWriter;
  /** Input and plan, read ahead. */
  readonly reads: Pick<EarlyReads, 'takeInput'>;
  /** Repeats a step while it fails with a retryable error. */
  retry<T>(what: string, work: () => Promise<T>): Promise<T>;
}

/** A run that is ready to begin. */
export interface OpenRun {
  readonly run: LineRun;
  /** Releases what the run reads from. */
  close(): Promise<void>;
}

/** Opens the input of a chunk. @throws input_missing if the object is gone */
export function openInput({ reads, retry }: RunContext): Promise<ObjectReader> {
  return retry('opening the input', () => reads.takeInput());
}
