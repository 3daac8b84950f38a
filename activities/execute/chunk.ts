import type { ExecuteChunkInput } from '../contract';

/** The input of `executeChunk`, with today's names instead of the wire names. */
export interface Chunk {
  readonly batchId: string;
  readonly planNonce: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputKey: string;
  readonly model: string;
  readonly safeModel: string;
  /** Plan positions `[from, to)`. */
  readonly from: number;
  readonly to: number;
  /** Unix ms. */
  readonly deadlineMs: number;
  readonly timeSliceMs: number;
  /** 95th percentile of the model's answer times so far, ms; null while unknown. */
  readonly p95Ms: number | null;
  readonly priority: number;
  /** Lines of the model without an answer when the chunk was cut; undefined in older workflows. */
  readonly openInModel: number | undefined;
  /** The chunk is one suspect line, which is sent exclusively. */
  readonly exclusive: boolean;
  /** The suspect line ends as `internal_error` if the journal proves it guilty. */
  readonly mayBePoison: boolean;
  /** Requests carry headers of the create call, and none may be sent without them. */
  readonly passesHeaders: boolean;
  /** The workflow looks up another route if this process has none for the model. */
  readonly reroutes: boolean;
  /** If an attempt cannot send anything, it fails and is retried, instead of returning. */
  readonly mayWait: boolean;
  /** How many workers may die at the chunk before it fails; set if it may wait, else Infinity. */
  readonly maxCrashes: number;
}

/** Reads the activity's input. */
export function chunkOf(input: ExecuteChunkInput): Chunk {
  const { safe, boxMs, solo, poison, maxDeaths, ...same } = input;
  return {
    ...same,
    safeModel: safe,
    timeSliceMs: boxMs,
    openInModel: input.openInModel,
    exclusive: solo === true,
    mayBePoison: poison === true,
    passesHeaders: input.passesHeaders === true,
    reroutes: input.reroutes === true,
    mayWait: input.mayWait === true,
    maxCrashes: maxDeaths ?? Infinity,
  };
}

/** Identifies a chunk among all that wait in a process. */
export function chunkKey({ batchId, safeModel, from }: Chunk): string {
  return `${batchId}/${safeModel}/${from}`;
}
