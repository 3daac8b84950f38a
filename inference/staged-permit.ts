import type { SendMark } from '../core/dispatch/adaptive-limit';
import type { LoadSignal } from '../core/dispatch/outcome';
import type { Permit } from './dispatcher';
import type { ModelPermits, StageTurn } from './model-permits';

/** A reply, from which the limit of its model learns. */
export interface LearnedReply {
  readonly signal: LoadSignal;
  readonly mark: SendMark;
  readonly pauseMs: number;
}

/** Gives out permits and takes them back. */
export interface PermitOwner {
  learn(permits: ModelPermits, reply: LearnedReply): void;
  /** Called once for each permit, with what its request cost, in the unit of the turns. */
  free(permits: ModelPermits, turns: readonly StageTurn[], cost: number): void;
  /** Called if a permit is released again. */
  onSecondRelease(model: string): void;
}

/** A permit of all stages on the path of one model. */
export class StagedPermit implements Permit {
  readonly #owner: PermitOwner;
  readonly #permits: ModelPermits;
  readonly #turns: readonly StageTurn[];
  #wasSent = false;
  /** In tokens; null if it is not known. */
  #used: number | null = null;
  #mark: SendMark | null = null;
  #isReleased = false;

  /** @param turns one for each stage of the path */
  constructor(owner: PermitOwner, permits: ModelPermits, turns: readonly StageTurn[]) {
    this.#owner = owner;
    this.#permits = permits;
    this.#turns = turns;
  }

  sent(): number | null {
    this.#wasSent = true;
    this.#mark = this.#permits.limit?.mark ?? null;
    return this.#mark?.limit ?? null;
  }

  replied(signal: LoadSignal, pauseMs: number): void {
    const mark = this.#mark;
    this.#mark = null;
    if (mark === null || signal === 'none') return;
    this.#owner.learn(this.#permits, { signal, mark, pauseMs });
  }

  used(cost: number): void {
    this.#used = cost;
  }

  release(): void {
    if (this.#isReleased) return this.#owner.onSecondRelease(this.#permits.model);
    this.#isReleased = true;
    this.#owner.free(this.#permits, this.#turns, this.#cost);
  }

  /** In the unit of the turns. */
  get #cost(): number {
    if (!this.#wasSent) return 0;
    return this.#used === null ? (this.#turns[0]?.cost ?? 0) : this.#used / this.#permits.weight;
  }
}
