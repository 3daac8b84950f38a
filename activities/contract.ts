import type { RequestCounts } from '../core/batch/counts';
import type { BatchStatus, StopCause, TerminalStatus } from '../core/batch/status';
import type { ExitReason } from '../core/chunks/exit-reason';
import type { PlannedDelegate } from './delegate/planned-delegate';

/*
 * The wire format between workflows and activities. Temporal stores these inputs and results in the
 * histories of running batches, and workers of two releases run side by side during a deploy. So a field
 * keeps its name and its meaning forever, even if there is a better name today (`safe`, `boxMs`, `solo`,
 * `left`, `holes`). A new field is optional (docs/design/temporal.md#wire-names). Code on both sides maps
 * these types to its own names once: `activities/execute/chunk.ts`, `workflows/chunk-input.ts` and
 * `workflows/model-progress.ts`.
 */

/**
 * The activities of a batch. Inputs and results hold ids, keys and counts, never a request or an answer
 * (docs/design/temporal.md#division-of-work). Every input is one object, so that fields can be added.
 */
export interface BatchActivities extends BatchStepActivities {
  /** Reads the input file. Afterwards its plan, or the list of its errors, is durable. */
  ingest(input: IngestInput): Promise<PlannedOrInvalid>;
  /** Answers plan entries `[from, to)` of one model until its time slice ends. */
  executeChunk(input: ExecuteChunkInput): Promise<ExecuteChunkResult>;
  /**
   * Ends plan entries `[from, to)` as `model_not_found`. If a worker can send the model after all, it
   * changes nothing and returns null. Workers of earlier releases do not have this activity, so its attempts
   * fail until a newer worker takes one.
   */
  endUnrouted(input: ExecuteChunkInput): Promise<ExecuteChunkResult | null>;
  /** Waits, after a stop, for chunks that did not return by themselves. */
  awaitReleased(input: { batchId: string; graceMs: number }): Promise<void>;
  /** As {@link BatchStepActivities.routeModel}, but fails while there is no route, so that it is retried. */
  awaitRoute(input: RouteInput): Promise<ModelRoute>;
  /** Writes manifest, result files and terminal record, or returns the ranges that lack an answer. */
  finalize(input: FinalizeInput): Promise<FinalizeResult>;
  /** Ends a batch whose finalization was given up: counts only, no files. */
  recordUnfinalized(input: { batchId: string; cause: StopCause | null }): Promise<RowState>;
}

/** Short steps. Each runs as a local activity first, and as a normal activity if that fails. */
export interface BatchStepActivities {
  /** Reads the row and this worker's settings: the first step of every run. */
  openBatch(input: { batchId: string }): Promise<OpenedBatch>;
  /** Writes a phase into the row if the transition is legal. Otherwise it changes nothing. */
  projectStatus(input: ProjectStatusInput): Promise<RowState>;
  /** Claims the first cause of an end. An earlier claim wins, so the cause in the returned row counts. */
  claimStop(input: { batchId: string; cause: StopCause }): Promise<RowState>;
  /** Where the chunks of a model go now; null while no live worker can send its requests. */
  routeModel(input: RouteInput): Promise<ModelRoute | null>;
}

/** Activities that do several steps of a batch at once. */
export interface SmallBatchActivities {
  /**
   * Reads a small input file, answers it and ends the batch. Returns early with what it has done, at most with the
   * plan, if anything keeps it from going on at once; the workflow does the rest step by step. Workers of earlier
   * releases do not have this activity, and then the workflow does everything step by step.
   */
  runSmallBatch(input: SmallBatchInput): Promise<SmallBatchResult>;
}

/** A batch whose input file is small. */
export interface SmallBatchInput {
  readonly batchId: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputKey: string;
  readonly deadlineMs: number;
  /** Time slice of its only chunk, ms. */
  readonly boxMs: number;
  /** Requests carry headers of the create call, and none may be sent without them. */
  readonly passesHeaders?: boolean;
}

/** How far {@link SmallBatchActivities.runSmallBatch} has come. */
export interface SmallBatchResult {
  readonly plan: PlannedOrInvalid;
  /** Of the only chunk; missing if none was run. */
  readonly chunk?: ExecuteChunkResult;
  /** The end that is in the row; missing if the batch has not ended. */
  readonly ended?: FinalizeResult;
}

/** Which requests are routed. */
export interface RouteInput {
  readonly model: string;
  /** Of the batch. Missing in calls of workflows of earlier releases. */
  readonly endpoint?: string;
}

/** Where the chunks of a model go, and how long one of its requests may take. */
export interface ModelRoute {
  /** Task queue. */
  readonly queue: string;
  readonly requestTimeoutMs: number;
}

/** Status and stop cause of the batch's row; `found` is false if there is no row. */
export interface RowState {
  readonly found: boolean;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
}

/** The row as a workflow needs it to begin, and the settings that apply to the run. */
export interface OpenedBatch extends RowState {
  readonly tenant: string;
  readonly endpoint: string;
  /** Key of the input object; null if there was no usable file when the batch was created. */
  readonly inputKey: string | null;
  readonly expiresAtMs: number;
  readonly createdAtMs: number;
  readonly settings: BatchSettings;
  /** Requests of the batch carry headers of the create call. Its chunks look them up. */
  readonly passesHeaders?: boolean;
  /** The manifest is written: every line is settled, so the batch can no longer expire. */
  readonly settled?: boolean;
  /** An earlier run found every line settled and began to finalize, without a stop cause. */
  readonly answered?: boolean;
  /** Ingestion and finalization write their phases into the row if they are asked to. */
  readonly announces?: boolean;
  /**
   * Set if its input file is so small that one activity may do all of it, and a worker for that is live. The longest
   * time that a request of any model may take, ms.
   */
  readonly small?: { readonly requestTimeoutMs: number };
}

/** The settings of a workflow. They are fixed when a run opens its batch. */
export interface BatchSettings {
  readonly lanesPerModel: number;
  readonly heartbeatTimeoutMs: number;
  readonly cancelGraceMs: number;
  readonly expiryGraceMs: number;
  readonly finalizeWindowMs: number;
  /** The tenant's weight of `fairness`. Missing in older histories: their chunks inherit that of the workflow. */
  readonly fairnessWeight?: number;
  /** Events after which the workflow continues as new; null leaves it to the server's suggestion. */
  readonly historyEvents: number | null;
  /**
   * How long a chunk may wait in its queue before the workflow warns and looks up its route again.
   * Missing in histories from before this setting: their chunks wait without a limit.
   */
  readonly queuedWarningMs?: number;
}

/** Input of an ingestion. */
export interface IngestInput {
  readonly batchId: string;
  /** The workflow looks up undecided models again, so ingestion plans some models without a route too. */
  readonly decidesLater?: boolean;
  /** The row shall say `in_progress` as soon as there is a plan. */
  readonly announces?: boolean;
}

/** The outcome of ingestion: a plan under `nonce`, or a file refused with `errorCount` errors. */
export type PlannedOrInvalid =
  | {
      readonly kind: 'planned';
      readonly nonce: string;
      readonly lineCount: number;
      readonly models: readonly PlannedModel[];
      readonly unroutedLines: number;
      /** The namespace has `BatchProviders`. Set only if a provider runs part of the batch. */
      readonly showsProviders?: boolean;
      /** The row after `in_progress` was written into it. Missing if it was not: the workflow writes it then. */
      readonly row?: RowState;
    }
  | { readonly kind: 'invalid'; readonly errorCount: number };

/** One model of a plan, with what the workflow needs to run it. */
export interface PlannedModel {
  /** Safe model name: the model's name in object keys. */
  readonly safe: string;
  readonly model: string;
  readonly entries: number;
  /** Task queue of the model's chunks. */
  readonly queue: string;
  readonly requestTimeoutMs: number;
  /** No worker could send it when the file was read. It is looked up again before its lines are given up. */
  readonly undecided?: boolean;
  /** It goes through a provider's batch API first. */
  readonly delegate?: PlannedDelegate;
}

/** One chunk. Inside the activities it is a `Chunk` (`activities/execute/chunk.ts`). */
export interface ExecuteChunkInput {
  readonly batchId: string;
  readonly planNonce: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputKey: string;
  readonly model: string;
  /** Safe model name: the model's name in object keys. */
  readonly safe: string;
  /** Plan positions `[from, to)`. */
  readonly from: number;
  readonly to: number;
  readonly deadlineMs: number;
  /** Time slice, ms. */
  readonly boxMs: number;
  /** 95th percentile of the model's answer times so far, ms. It decides the wait for a first permit. */
  readonly p95Ms: number | null;
  /** 2 urgent, 3 normal, 4 relaxed: order within the tenant. */
  readonly priority: number;
  /** Lines of the model without an answer when the chunk was cut, its own included. */
  readonly openInModel?: number;
  /** The chunk is one suspect line, which is sent exclusively. */
  readonly solo?: boolean;
  /** The suspect line has failed often enough to end as `internal_error`, if the journal proves it. */
  readonly poison?: boolean;
  /** Requests carry headers of the create call, and none may be sent without them. */
  readonly passesHeaders?: boolean;
  /** The workflow looks up another route if this worker has none for the model. */
  readonly reroutes?: boolean;
  /**
   * If the chunk cannot send anything, its attempt fails and is tried again, instead of returning: the
   * chunk waits at the server. Set on one chunk of a model at a time.
   */
  readonly mayWait?: boolean;
  /** For a chunk that may wait, whose attempts are unlimited: how many workers may die at it. */
  readonly maxDeaths?: number;
  /** Nothing of the batch is left to hand out, so the chunk that is done last in its process may end the batch. */
  readonly isLast?: boolean;
}

/** Progress and observations of an attempt; small, because it goes into the history. */
export interface ExecuteChunkResult {
  /** Lowest plan position without an answer; `to` if all are answered. */
  readonly next: number;
  /** Over `[from, next)`. */
  readonly completed: number;
  readonly failed: number;
  /** Answers that this attempt added. */
  readonly answered: number;
  readonly worker: string;
  /** Answers per second of this attempt; null if there were none. */
  readonly ratePerSec: number | null;
  readonly p95Ms: number | null;
  /** Exit reason. */
  readonly left: ExitReason;
  /** The batch's stop cause, if the attempt saw one. */
  readonly stopCause: StopCause | null;
  /** The end that is in the row; missing if the batch has not ended. */
  readonly ended?: FinalizeResult;
}

/** Input of a finalization. */
export interface FinalizeInput {
  readonly batchId: string;
  /** Null if there is no plan: only the terminal record is written. */
  readonly nonce: string | null;
  readonly cause: StopCause | null;
  /** How long workers may try to make the files of a batch that must end, ms; without it, no limit. */
  readonly windowMs?: number;
  /** The limit applies although the batch need not end: somebody else tries again. */
  readonly isBounded?: boolean;
  /** The row shall say `finalizing` from the start. */
  readonly announces?: boolean;
}

/** Either the ranges that must still run, or the end that is in the row. */
export type FinalizeResult =
  | { readonly kind: 'holes'; readonly holes: readonly UnansweredRange[] }
  | {
      readonly kind: 'done';
      readonly status: TerminalStatus;
      readonly counts: RequestCounts;
      readonly outputFileId: string | null;
      readonly errorFileId: string | null;
    };

/** Plan positions `[from, to)` of one model that finalization found without an answer. */
export interface UnansweredRange {
  /** Safe model name. */
  readonly safe: string;
  readonly from: number;
  readonly to: number;
}

/** A phase of the batch, to be written into its row. */
export interface ProjectStatusInput {
  readonly batchId: string;
  readonly status: 'in_progress' | 'finalizing';
  readonly total?: number;
  readonly model?: string | null;
  readonly models?: readonly string[];
}
