import type { StopCause } from '../../core/batch/status';
import type { Range } from '../../core/range';
import type { ExecuteChunkResult } from '../contract';

/*
 * The wire format of delegation, between workflows and activities. As in `activities/contract.ts`, a field
 * keeps its name and its meaning forever, and a new one is optional.
 */

/** The activities that run a model through a provider's batch API (docs/design/delegation.md#activities). */
export interface DelegateActivities {
  /** Cuts what is open into parts and makes the rows of their jobs; or returns the jobs that still run. */
  openParts(input: OpenPartsInput): Promise<OpenedParts>;
  /** Takes a job from its row to the provider's acceptance: stage, upload, create. */
  submitJob(input: JobInput): Promise<SubmittedJob>;
  /** Asks the provider until the job has ended. Cancels it when it is late, or if the batch stops. */
  watchJob(input: WatchJobInput): Promise<WatchedJob>;
  /** Writes the job's answers into the journal. */
  collectJob(input: CollectJobInput): Promise<CollectedJob>;
  /** Ends plan entries `[from, to)` that no provider answered, with kept answers or error codes. */
  settlePart(input: SettlePartInput): Promise<ExecuteChunkResult>;
}

/** What all activities of a delegated model are told. */
export interface DelegatedPart {
  readonly batchId: string;
  readonly planNonce: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputKey: string;
  readonly model: string;
  /** Safe model name: the model's name in object keys. */
  readonly safe: string;
  readonly provider: string;
  /** When the batch expires, Unix ms. */
  readonly deadlineMs: number;
  readonly giveUpAtMs: number;
  readonly harvestGraceMs: number;
}

export interface OpenPartsInput extends DelegatedPart {
  /** Plan positions without an answer, in order. */
  readonly open: readonly Range[];
  /** Lines without an answer in `open`; null if unknown. */
  readonly unanswered: number | null;
  /** The batch stops: return what still runs, and begin nothing. */
  readonly stopping?: boolean;
  /** The workflow waits no longer: give up what still runs, and return nothing. */
  readonly isOver?: boolean;
}

/** Jobs to run now. None: the provider does nothing more for the open ranges. */
export interface OpenedParts {
  readonly jobs: readonly DelegatedJob[];
  /** How many of them may run as one part; 1 by default (docs/design/delegation.md#parts-of-several-jobs). */
  readonly jobsPerPart?: number;
}

/** One job at the provider, or several that run as one part. */
export interface DelegatedJob {
  readonly jobId: string;
  /** Plan positions that its lines come from, `[from, to)`. */
  readonly from: number;
  readonly to: number;
  /** From 0. The next generation covers what this one left unanswered. */
  readonly generation: number;
  /** Number of the job within its part and generation, from 0. */
  readonly ordinal: number;
  /** All jobs of the part, if it has several. The other members are those of the first one, and `to` of the last. */
  readonly jobs?: readonly DelegatedJob[];
}

export interface JobInput extends DelegatedPart {
  readonly job: DelegatedJob;
}

/** What became of a job that was to be submitted. */
export interface SubmittedJob {
  /**
   * `submitted`: the provider has it, or may have it. `empty`: no line of the part lacked an answer. `refused`: the provider
   * will not run it. `stopped`: the batch has a stop cause. `late`: the time to wait for the provider is over.
   */
  readonly kind: 'submitted' | 'empty' | 'refused' | 'stopped' | 'late';
  /** The job covers `[from, to)`: staging ends a part early when it is large enough. */
  readonly to: number;
  readonly stopCause: StopCause | null;
}

export interface WatchJobInput extends JobInput {
  /** The batch stops: the job is cancelled at the provider, and only its end is awaited. */
  readonly stopping?: boolean;
}

/** How the watch over a job ended. */
export interface WatchedJob {
  /** `abandoned`: it did not end in time. Its late answers are not delivered. */
  readonly kind: 'ended' | 'abandoned';
}

export interface CollectJobInput extends JobInput {
  /** The positions that the result counts, in order; all of the part by default. The others are counted already. */
  readonly taken?: readonly Range[];
}

/** What a part has become. Counts as those of a chunk. */
export interface CollectedJob {
  /** Lowest plan position without an answer; `to` of the job if all are answered. */
  readonly next: number;
  /** Over the positions to count that are below `next`. */
  readonly completed: number;
  readonly failed: number;
  /** Lines of the job without an answer that the provider may answer another time. */
  readonly unanswered: number;
  readonly stopCause: StopCause | null;
}

export interface SettlePartInput extends DelegatedPart {
  readonly from: number;
  readonly to: number;
}
