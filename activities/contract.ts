import type { RequestCounts } from '../core/batch/counts';
import type { BatchStatus, StopCause, TerminalStatus } from '../core/batch/status';

/**
 * What the workflow asks of its activities and what it gets back: ids, keys and counts, never a
 * request or an answer (design §4). Every input is one object, so that fields can be added.
 */
export interface BatchActivities extends BatchStepActivities {
  /** Scans the input once; its plan, or the finding that the file is invalid, is durable afterwards. */
  ingest(input: IngestInput): Promise<PlannedOrInvalid>;
  /** Answers plan entries `[from, to)` of one model until its box ends (execution §3). */
  executeChunk(input: ExecuteChunkInput): Promise<ExecuteChunkResult>;
  /**
   * Ends plan entries `[from, to)` as `model_not_found`, unless a worker can send the model after all:
   * then it changes nothing and answers null. Workers of earlier releases do not know this activity, so
   * its attempts fail there until a worker of this release takes it.
   */
  endUnrouted(input: ExecuteChunkInput): Promise<ExecuteChunkResult | null>;
  /** Waits, after a stop, for chunks that did not return by themselves (execution §4). */
  awaitReleased(input: { batchId: string; graceMs: number }): Promise<void>;
  /** {@link BatchStepActivities.routeModel} that fails, to be tried again, while there is no route. */
  awaitRoute(input: { model: string }): Promise<ModelRoute>;
  /** Manifest, result files and terminal record; or the ranges that still lack an answer. */
  finalize(input: FinalizeInput): Promise<FinalizeResult>;
  /** The end of a finalization that could not be done within its window: counts only. */
  recordUnfinalized(input: { batchId: string; cause: StopCause | null }): Promise<RowState>;
}

/** Short steps on the batch's row: run as local activities, with a normal one as fallback. */
export interface BatchStepActivities {
  /** Reads the row and this worker's settings: the first step of every run. */
  openBatch(input: { batchId: string }): Promise<OpenedBatch>;
  /** Writes a phase into the row where the transition is legal; zero rows is no error. */
  projectStatus(input: ProjectStatusInput): Promise<RowState>;
  /** Claims the first cause of an end; the row's cause, whoever set it, is answered and obeyed. */
  claimStop(input: { batchId: string; cause: StopCause }): Promise<RowState>;
  /** Where the chunks of a model go now; null while no live worker can send its requests. */
  routeModel(input: { model: string }): Promise<ModelRoute | null>;
}

/** Where the chunks of a model go, and how long one of its requests may take. */
export interface ModelRoute {
  /** Task queue. */
  readonly queue: string;
  readonly requestTimeoutMs: number;
}

/** What the row says; `found: false` where there is none. */
export interface RowState {
  readonly found: boolean;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
}

/**
 * What a workflow needs to know of its row before it can begin, and the settings that hold for
 * it.
 */
export interface OpenedBatch extends RowState {
  readonly tenant: string;
  readonly endpoint: string;
  /** Key of the input object; null where there was no usable file at create. */
  readonly inputKey: string | null;
  readonly expiresAtMs: number;
  readonly createdAtMs: number;
  readonly settings: BatchSettings;
  /** Its requests carry headers of the create call, which its chunks look up. */
  readonly passesHeaders?: boolean;
  /** Its manifest is written: every line is settled, and no deadline can end it any more. */
  readonly settled?: boolean;
  /** An earlier run found every line settled: it was making the manifest, under no cause. */
  readonly answered?: boolean;
}

/** The part of the configuration that decides how a workflow acts; fixed for a run when it opens. */
export interface BatchSettings {
  readonly lanesPerModel: number;
  readonly heartbeatTimeoutMs: number;
  readonly cancelGraceMs: number;
  readonly expiryGraceMs: number;
  readonly finalizeWindowMs: number;
  /** The tenant's weight in `concurrency.tenant_weights`; left out if it has none. */
  readonly fairnessWeight?: number;
  /** Events after which the workflow continues as new; null leaves it to the server's suggestion. */
  readonly historyEvents: number | null;
  /**
   * How long a chunk may wait in its queue before the workflow says that nobody takes it and looks up
   * its route again. Left out in histories from before there was such a time: they have none.
   */
  readonly queuedWarningMs?: number;
}

export interface IngestInput {
  readonly batchId: string;
  /** The workflow looks up undecided models again: some models without a route get a plan too. */
  readonly decidesLater?: boolean;
}

/**
 * The outcome of ingestion: a plan under `nonce`, or a file that is refused with that many
 * faults.
 */
export type PlannedOrInvalid =
  | {
      readonly kind: 'planned';
      readonly nonce: string;
      readonly lineCount: number;
      readonly models: readonly PlannedModel[];
      readonly unroutedLines: number;
    }
  | { readonly kind: 'invalid'; readonly errorCount: number };

/** One model of a plan, with what the workflow needs to run it. */
export interface PlannedModel {
  /** Name in object keys. */
  readonly safe: string;
  readonly model: string;
  readonly entries: number;
  /** Task queue of the model's chunks. */
  readonly queue: string;
  readonly requestTimeoutMs: number;
  /** No worker could send it when the file was read: it is looked up again before it is given up. */
  readonly undecided?: boolean;
}

export interface ExecuteChunkInput {
  readonly batchId: string;
  readonly planNonce: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputKey: string;
  readonly model: string;
  readonly safe: string;
  /** Plan positions `[from, to)`. */
  readonly from: number;
  readonly to: number;
  readonly deadlineMs: number;
  readonly boxMs: number;
  /** Answered p95 of this model so far: how long it is worth waiting for a first permit. */
  readonly p95Ms: number | null;
  /** 2 urgent, 3 normal, 4 relaxed: order within the tenant. */
  readonly priority: number;
  /** Lines of the model without an answer when the chunk was cut, its own included. */
  readonly openInModel?: number;
  /** The line runs alone in its process: it is suspected of killing it. */
  readonly solo?: boolean;
  /** Three solo runs failed: the line is answered `internal_error` and nothing is sent. */
  readonly poison?: boolean;
  /** Requests carry headers of the create call: without them nothing is sent. */
  readonly passesHeaders?: boolean;
  /** The workflow looks up another route when this worker has none for the model. */
  readonly reroutes?: boolean;
  /**
   * A chunk that cannot send anything now fails, to be tried again, instead of returning: it waits at
   * the server. Set on one chunk of a model at a time.
   */
  readonly mayWait?: boolean;
  /** Of a chunk that may wait, whose attempts are unlimited: how many may die before it gives up. */
  readonly maxDeaths?: number;
}

/** How far a chunk came and what it saw; small, for it goes into the history. */
export interface ExecuteChunkResult {
  /** Lowest plan position without an answer; `to` when all are answered. */
  readonly next: number;
  /** Over `[from, next)`. */
  readonly completed: number;
  readonly failed: number;
  /** Answers that this run added. */
  readonly answered: number;
  readonly worker: string;
  /** Answers a second in this run; null where there were none. */
  readonly ratePerSec: number | null;
  readonly p95Ms: number | null;
  /** Why it returned before `to`, for the details that operators read. */
  readonly left: ExitReason;
  readonly stopCause: StopCause | null;
}

/** Why a chunk returned: `done` is the whole range, everything else leaves a rest. */
export type ExitReason =
  | 'done'
  | 'box'
  | 'drain'
  | 'stopped'
  | 'fenced'
  | 'unheard'
  | 'no_permit'
  | 'breaker_open'
  | 'unrouted'
  | 'row_terminal';

export interface FinalizeInput {
  readonly batchId: string;
  /** Null: there is no plan, the record alone is written. */
  readonly nonce: string | null;
  readonly cause: StopCause | null;
  /** How long workers may try to make the files of a batch that is to end; left out: for ever. */
  readonly windowMs?: number;
}

/** Either what is still to be run, or the end as the row has it. */
export type FinalizeResult =
  | { readonly kind: 'holes'; readonly holes: readonly UnansweredRange[] }
  | {
      readonly kind: 'done';
      readonly status: TerminalStatus;
      readonly counts: RequestCounts;
      readonly outputFileId: string | null;
      readonly errorFileId: string | null;
    };

/** Plan positions `[from, to)` of one model that have no answer yet. */
export interface UnansweredRange {
  readonly safe: string;
  readonly from: number;
  readonly to: number;
}

export interface ProjectStatusInput {
  readonly batchId: string;
  readonly status: 'in_progress' | 'finalizing';
  readonly total?: number;
  readonly model?: string | null;
  readonly models?: readonly string[];
}
