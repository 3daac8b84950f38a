import type { LoadSignal } from '../core/dispatch/outcome';

/**
 * Admission to the model servers: permits per model, then gateway, then process, shared by every chunk
 * of every batch in this process (docs/design/permits.md#permits).
 */
export interface Dispatcher {
  /**
   * Waits for a permit of `request.model`, then of its gateway, then of the process. Tenants share by
   * weight; within a tenant the priority decides, then batches share by cost.
   *
   * @param onGranted called once, with the permit, unless the wait is stopped before; never before `wait` returns, and
   * never inside a call of a permit. It must not throw.
   */
  wait(request: AcquireRequest, onGranted: (permit: Permit) => void): PermitWait;
}

/** Postpones what follows from permits that are given back. By default, the next waiters get them at the end of the turn. */
export interface ReleaseHold {
  /** From now on, permits that are given back stay taken until {@link endHold}. */
  holdReleases(): void;
  /** Hands them to waiters before it returns, one after the other. Each waiter may wait again before the next one is chosen. */
  endHold(): void;
}

/** A request that waits for a permit. */
export interface PermitWait {
  /** Ends the wait. Does nothing once the permit was handed over. */
  stop(): void;
}

/** A request for a permit. */
export interface AcquireRequest {
  readonly tenant: string;
  readonly batch: string;
  /** The per-model limit counts requests of this name. */
  readonly model: string;
  /** The limit that all models of the gateway share; absent if it has none. */
  readonly gateway?: GatewayLimit;
  /** Whether the server divides its service among tenants itself; false by default. */
  readonly divides?: boolean;
  /** 2 urgent, 3 normal, 4 relaxed. */
  readonly priority?: number;
  /** Of requests of one batch and priority that wait for the model, those with the least number go first; 0 by default. */
  readonly order?: number;
  /** What the request is expected to cost, in tokens; 1 by default (docs/design/flow-control.md#cost). */
  readonly cost?: number;
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
   * Charges the tenant and the batch what the request really cost: nothing if it was never sent, and the
   * expected cost if `used` was not called. Gives back the permits of all limits. A second call is a bug: it trips the guard
   * (`permit_released_twice`) and frees nothing.
   */
  release(): void;
}

/** Reports of one request, from which the limit of its model and the shares of tenants follow. */
export interface LoadReport {
  /**
   * Call it when the request is sent. Returns the model's limit at this moment, or null if it is fixed: a
   * 429 to a request that was sent at a limit above 1 is not the fault of its line.
   */
  sent(): number | null;
  /** The reply has arrived; call it before the permit is released. */
  replied(signal: LoadSignal, pauseMs: number): void;
  /** What the request cost, in tokens; call it before the permit is released. */
  used(cost: number): void;
}

/** The current limit of a model. It explains why a model gets fewer permits than configured. */
export interface ModelLimit {
  /** Requests that may be in flight now. */
  readonly limit: number;
  /** `concurrency.per_model`. */
  readonly max: number;
  /** Remaining time of the model server's `Retry-After`, ms; 0 outside a pause. */
  readonly pausedMs: number;
}
