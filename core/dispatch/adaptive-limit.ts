import type { LoadSignal } from './outcome';

/** The state of a limit when a request was sent: decides what its reply may change. */
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
  /** How long the server asked to be left alone, ms; 0 if it did not ask. */
  readonly pauseMs: number;
  readonly nowMs: number;
}

/** A `Retry-After` beyond this pauses a model for this long only. */
const MAX_PAUSE_MS = 300_000;

/**
 * How many requests of one model a server takes at once, learnt from its replies: additive increase,
 * multiplicative decrease (Chiu and Jain 1989). One per model and process; a restart forgets it.
 *
 * | reply | effect |
 * |---|---|
 * | `success` | the limit grows by 1, up to `max`: after each one below what the server bore before the last cut, else after `limit` of them |
 * | `overload` | halves the limit, at least 1, unless the request was sent before the last cut; pauses for `pauseMs` |
 * | `none` | nothing |
 *
 * The fast way back up is slow start's: with one step for `limit` successes all the way, a server with
 * five places stands idle for a fifth of its time.
 *
 * Requests that were sent before a cut tell nothing about the new limit, so one burst of refusals cuts
 * once. Cuts are counted instead of timed: two events of one millisecond keep their order, and a clock
 * that is set back changes nothing.
 */
export class AdaptiveLimit {
  readonly max: number;
  #limit: number;
  #successes = 0;
  /** What the server bore before the last cut, as far as is known. */
  #borneLimit = 0;
  #pausedUntilMs = 0;
  #mark: SendMark;

  constructor(max: number) {
    this.max = max;
    this.#limit = max;
    this.#mark = { limit: max, cuts: 0 };
  }

  /** Requests that may be open at once now. */
  get limit(): number {
    return this.#limit;
  }

  /** Nothing is sent before this time, in the clock of `nowMs`; 0 before the first pause. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  /** To be taken when a request is sent, and handed back with its reply. */
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

  /** Whether there is nothing to remember: a new limit would do the same. */
  isFresh(nowMs: number): boolean {
    return this.#limit === this.max && nowMs >= this.#pausedUntilMs;
  }

  #succeed(): void {
    // A limit that cannot grow need not count: this runs for every request.
    if (this.#limit === this.max) return;
    const needed = this.#limit < this.#borneLimit ? 1 : this.#limit;
    if (++this.#successes < needed) return;
    this.#successes = 0;
    this.#limit++;
    this.#mark = { limit: this.#limit, cuts: this.#mark.cuts };
  }

  #cut(): void {
    this.#borneLimit = this.#limit - 1;
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
    this.#successes = 0;
    this.#mark = { limit: this.#limit, cuts: this.#mark.cuts + 1 };
  }
}
