import type { SendMark } from '../core/dispatch/adaptive-limit';
import type { LoadSignal } from '../core/dispatch/outcome';
import type { Permit } from './dispatcher';
import type { ModelPermits } from './model-permits';

/** A reply, from which the limit of its model learns. */
export interface LearnedReply {
  readonly signal: LoadSignal;
  readonly mark: SendMark;
  readonly pauseMs: number;
}

/** Gives out permits and takes them back. */
export interface PermitOwner {
  learn(permits: ModelPermits, reply: LearnedReply): void;
  /** Called once for each permit. */
  free(permits: ModelPermits): void;
  /** Called if a permit is released again. */
  onSecondRelease(model: string): void;
}

/** A permit of all stages on the path of one model. */
export class StagedPermit implements Permit {
  readonly #owner: PermitOwner;
  readonly #permits: ModelPermits;
  #mark: SendMark | null = null;
  #isReleased = false;

  constructor(owner: PermitOwner, permits: ModelPermits) {
    this.#owner = owner;
    this.#permits = permits;
  }

  sent(): number | null {
    this.#mark = this.#permits.limit?.mark ?? null;
    return this.#mark?.limit ?? null;
  }

  replied(signal: LoadSignal, pauseMs: number): void {
    const mark = this.#mark;
    this.#mark = null;
    if (mark === null || signal === 'none') return;
    this.#owner.learn(this.#permits, { signal, mark, pauseMs });
  }

  release(): void {
    if (this.#isReleased) return this.#owner.onSecondRelease(this.#permits.model);
    this.#isReleased = true;
    this.#owner.free(this.#permits);
  }
}
