import type { BatchStatus } from '../../../core/batch/status';
import type { BatchPlan, FaultKind, Part } from '../round/plan';

/** One request as the model server saw it, updated while it runs. Times are Unix ms. */
export interface Arrival {
  /** `x-request-id`. */
  readonly lineId: string;
  readonly atMs: number;
  body: string;
  /** Whether the answer is final, so that there is no reason to send the line again. */
  final: boolean;
  /** `dropped`: by the server; `aborted`: by the client, or with it. */
  end: 'open' | 'answered' | 'dropped' | 'aborted';
  endedAtMs: number | null;
}

/** The members of a batch object that the checker uses. Times are Unix seconds. */
export interface BatchView {
  readonly id: string;
  readonly status: BatchStatus;
  readonly created_at: number;
  readonly in_progress_at: number | null;
  readonly expires_at: number;
  readonly finalizing_at: number | null;
  readonly completed_at: number | null;
  readonly failed_at: number | null;
  readonly expired_at: number | null;
  readonly cancelling_at: number | null;
  readonly cancelled_at: number | null;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly request_counts: { total: number; completed: number; failed: number };
  readonly usage: {
    readonly input_tokens: number;
    readonly input_tokens_details: { readonly cached_tokens: number };
    readonly output_tokens: number;
    readonly total_tokens: number;
  };
}

/** A batch as one GET showed it. */
export interface Sample {
  readonly sentMs: number;
  readonly gotMs: number;
  readonly batch: BatchView;
}

/** One cancel call: its HTTP status, and the batch object if that was 200. */
export interface CancelCall {
  readonly sentMs: number;
  readonly gotMs: number;
  readonly httpStatus: number;
  readonly batch: BatchView | null;
}

/** One call of a user beside the batches. Times are Unix ms. */
export interface UserCall {
  /** Its number, of which its answer is a pure function. */
  readonly index: number;
  readonly sentMs: number;
  readonly endedMs: number;
  /** `whole`: the end of the answer arrived; `broken`: the connection ended first; `hangs`: neither. */
  readonly end: 'whole' | 'broken' | 'hangs';
  /** Null if no head arrived. */
  readonly status: number | null;
  /** What arrived of the body. */
  readonly text: string;
}

/** Everything known of one batch after its round. */
export interface BatchEvidence {
  readonly plan: BatchPlan;
  readonly id: string;
  /** In the order in which they were made. */
  readonly samples: readonly Sample[];
  readonly cancels: readonly CancelCall[];
  /** Text of the two files; null where the batch has none. */
  readonly output: string | null;
  readonly errors: string | null;
}

/** A fault as it really struck, from its first moment to the last. */
export interface Disturbance {
  readonly kind: FaultKind;
  readonly part: Part;
  readonly fromMs: number;
  /** A killed part's: when a new process was seen; a drained one's: when it was gone. */
  readonly toMs: number;
}

/** What the checker may forgive. */
export interface Tolerance {
  /** Age of answers that a killed worker may not have journalled, ms (docs/design/execution.md#what-a-killed-worker-costs). */
  readonly lastFlushMs: number;
  /** Between two clocks of one machine, ms. */
  readonly clockMs: number;
  readonly cancelGraceMs: number;
}

/** One round, seen from outside. */
export interface RoundEvidence {
  readonly batches: readonly BatchEvidence[];
  /** None without a gateway. */
  readonly users: readonly UserCall[];
  readonly disturbances: readonly Disturbance[];
  /** Of this round and all before. */
  readonly arrivals: readonly Arrival[];
  readonly tolerance: Tolerance;
}

/** Something that must not be. */
export interface Violation {
  readonly rule: string;
  readonly batch: string;
  readonly detail: string;
}

/** The last thing that was seen of a batch. */
export function lastSeen(batch: BatchEvidence): BatchView | null {
  return batch.samples.at(-1)?.batch ?? null;
}
