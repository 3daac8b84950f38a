import type { PermitRequest } from '../core/dispatch/permits/permit-turn';
import type { Permit, PermitWait } from './dispatcher';
import type { ModelPermits, StageTurn, Waiter } from './model-permits';

/** Whom a waiter asks to end its wait. */
export interface WaitKeeper {
  /** The waiter has no permit yet, and waits no more. */
  stopWaiting(waiter: Waiter): void;
}

/** A request that waits for a permit, and can be stopped at any time. */
export class StoppableWaiter implements Waiter, PermitWait {
  readonly request: PermitRequest;
  readonly permits: ModelPermits;
  readonly passed: StageTurn[] = [];
  waiting: StageTurn | null = null;
  readonly #keeper: WaitKeeper;
  readonly #onGranted: (permit: Permit) => void;
  /** Granted and not handed over yet. */
  #permit: Permit | null = null;
  #isOver = false;

  constructor(
    keeper: WaitKeeper,
    asked: { readonly request: PermitRequest; readonly permits: ModelPermits },
    onGranted: (permit: Permit) => void,
  ) {
    this.#keeper = keeper;
    this.request = asked.request;
    this.permits = asked.permits;
    this.#onGranted = onGranted;
  }

  grant(permit: Permit): void {
    this.#permit = permit;
  }

  handOver(): void {
    const permit = this.#permit;
    if (permit === null) return;
    this.#permit = null;
    this.#isOver = true;
    this.#onGranted(permit);
  }

  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const permit = this.#permit;
    this.#permit = null;
    if (permit === null) this.#keeper.stopWaiting(this);
    else permit.release();
  }
}
