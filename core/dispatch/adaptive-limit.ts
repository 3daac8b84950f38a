import type { LoadSignal } from './outcome';

/** The state of a limit when a request was sent: it decides what the reply may change. */
export interface SendMark {
  readonly limit: number;
  /** Cuts made before the request was sent. */
  readonly cuts: number;
}

/** A reply, as far as it says something about the load of its server. */
export interface LoadReply {
  readonly signal: LoadSignal;
  /** The mark taken when the request was sent. */
  readonly mark: SendMark;
  /** The pause that the server asked for (`Retry-After`), ms; 0 if none. */
  readonly pauseMs: number;
  readonly nowMs: number;
}

/** A longer `Retry-After` pauses a model for this long only. */
const MAX_PAUSE_MS = 300_000;

/**
 * How many requests of one model its server takes at once, learned from the replies
 * (docs/design/execution.md#adaptive-limits). One per model and process; a restart forgets it.
 *
 * The capacity of a model server is unknown and changes: other clients, longer prompts, another GPU. A
 * fixed limit is either too low, and the server is idle, or too high, and most requests come back as
 * 429. The rule is the one that TCP uses, additive increase and multiplicative decrease (Chiu and Jain,
 * 1989): it converges to a fair share even if every worker learns by itself and knows of no other.
 *
 * | reply      | effect                                                                          |
 * |------------|---------------------------------------------------------------------------------|
 * | `success`  | the limit grows by 1, up to `max`: after each success while it is below the     |
 * |            | limit that the server could bear before the last cut, then after `limit` ones   |
 * | `overload` | halves the limit, to 1 at least, and pauses for `pauseMs`; a request that was   |
 * |            | sent before the last cut does not cut again                                     |
 * | `none`     | nothing                                                                         |
 *
 * The fast way back up is slow start. With one step per `limit` successes all the way, a server with
 * five places would be idle for a fifth of its time.
 *
 * A request that was sent before a cut says nothing about the limit after it, so one burst of refusals
 * cuts once. Cuts are numbered rather than timed: two events in one millisecond keep their order, and a
 * clock that steps back changes nothing.
 */
export class AdaptiveLimit {
  readonly max: number;
  #limit: number;
  #successes = 0;
  /** One below the limit at the last cut: the server could bear about that much. */
  #bearableLimit = 0;
  #pausedUntilMs = 0;
  #mark: SendMark;

  constructor(max: number) {
    this.max = max;
    this.#limit = max;
    this.#mark = { limit: max, cuts: 0 };
  }

  /** Requests that may be in flight now. */
  get limit(): number {
    return this.#limit;
  }

  /** Nothing may be sent before this time, in the clock of `nowMs`; 0 before the first pause. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  /** Take it when a request is sent, and pass it back with the reply. */
  get mark(): SendMark {
    return this.#mark;
  }

  onReply({ signal, mark, pauseMs, nowMs }: LoadReply): void {
    if (signal === 'success') this.#succeed();
    if (signal !== 'overload') return;
    if (mark.cuts === this.#mark.cuts) this.#cut();
    if (pauseMs <= 0) return;
    const untilMs = nowMs + Math.min(pauseMs, MAX_PAUSE_MS);
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs);
  }

  /** Whether a new instance would behave in the same way, so that this one can be forgotten. */
  isFresh(nowMs: number): boolean {
    return this.#limit === this.max && nowMs >= this.#pausedUntilMs;
  }

  #succeed(): void {
    // At the maximum there is nothing to count; this runs for every request.
    if (this.#limit === this.max) return;
    const needed = this.#limit < this.#bearableLimit ? 1 : this.#limit;
    if (++this.#successes < needed) return;
    this.#successes = 0;
    this.#limit++;
    this.#mark = { limit: this.#limit, cuts: this.#mark.cuts };
  }

  #cut(): void {
    this.#bearableLimit = this.#limit - 1;
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
    this.#successes = 0;
    this.#mark = { limit: this.#limit, cuts: this.#mark.cuts + 1 };
  }
}
