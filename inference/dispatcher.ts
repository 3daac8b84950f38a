import type { LoadSignal } from '../core/dispatch/outcome';

/**
 * Admission to the model servers: permits per model, then gateway, then process, shared by every chunk
 * of every batch in this process (docs/design/execution.md#permits).
 */
export interface Dispatcher {
  /**
   * Waits for a permit of `request.model`, then of its gateway, then of the process. Tenants take turns
   * by weight; within a tenant the priority decides, then models take turns.
   * @throws AbortError if `signal` aborts first
   */
  acquire(request: AcquireRequest, signal?: AbortSignal): Promise<Permit>;
}

/** Who asks for a permit, and for what. */
export interface AcquireRequest {
  readonly tenant: string;
  readonly batchId: string;
  /** What the per-model limit counts. */
  readonly model: string;
  /** The limit that all models of the gateway share; absent if it has none. */
  readonly gateway?: GatewayLimit;
  readonly deadlineMs: number;
  /** How much of the limit the request uses; always 1. */
  readonly cost: number;
  /** 2 urgent, 3 normal, 4 relaxed. */
  readonly priority?: number;
}

/** A gateway that takes a bounded number of requests at once, over all its models. */
export interface GatewayLimit {
  /** The same for all models of the gateway. */
  readonly key: string;
  readonly limit: number;
}

/** Allows one request in flight. It is held until the answer is complete, never during a backoff. */
export interface Permit extends LoadReport {
  /**
   * Gives back all that it holds. A second call is a bug: it trips the guard (`permit_released_twice`)
   * and frees nothing.
   */
  release(): void;
}

/** What the limit of a model learns from the request that a permit was for. */
export interface LoadReport {
  /**
   * The request is sent now. Returns the model's limit at this moment, or null if it is fixed: a 429
   * to a request sent at a limit above 1 is not the fault of its line.
   */
  sent(): number | null;
  /** The reply has arrived; call it before the permit is released. */
  replied(signal: LoadSignal, pauseMs: number): void;
}

/** Why a model gets fewer permits than configured. */
export interface ModelLimit {
  /** Requests that may be in flight now. */
  readonly limit: number;
  /** `concurrency.per_model`. */
  readonly max: number;
  /** What is left of the model server's `Retry-After`, ms; 0 if it asked for no pause. */
  readonly pausedMs: number;
}
