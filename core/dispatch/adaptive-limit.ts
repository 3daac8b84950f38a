import type { LoadSignal } from './outcome';

/** The state of a limit when a request was sent. It decides what the reply may change. */
export interface SendMark {
  readonly limit: number;
  /** Cuts made before the request was sent. */
  readonly cuts: number;
}

/** What a reply shows about the load of its server. */
export interface LoadReply {
  readonly signal: LoadSignal;
  /** The mark taken when the request was sent. */
  readonly mark: SendMark;
  /** The pause that the server requested (`Retry-After`), ms; 0 for none. */
  readonly pauseMs: number;
  readonly nowMs: number;
  /** Requests that may be in flight for another reason; the limit by default. A cut halves the smaller one. */
  readonly usable?: number;
}

/** A longer `Retry-After` pauses a model for only this long. */
const MAX_PAUSE_MS = 300_000;

/**
 * How many requests of one model may be in flight at once, learned from the server's replies
 * (docs/design/permits.md#adaptive-limits). There is one limit per model and process; a restart resets
 * it.
 *
 * The capacity of a model server is unknown and changes: other clients, longer prompts, another GPU. With
 * a fixed limit that is too low, the server is idle; with one that is too high, most replies are 429. The
 * limit follows the rule of TCP, additive increase and multiplicative decrease (Chiu and Jain, 1989), which
 * converges to a fair share although every worker learns on its own.
 *
 * | reply      | effect                                                                          |
 * |------------|---------------------------------------------------------------------------------|
 * | `success`  | the limit grows by 1, up to `max`: after each success until it is one below the |
 * |            | limit before the last cut, then after every `limit` successes                   |
 * | `overload` | halves the limit, to 1 at least, and pauses for `pauseMs`; a request that was   |
 * |            | sent before the last cut does not cut again                                     |
 * | `none`     | nothing                                                                         |
 *
 * The quick recovery resembles TCP's slow start. If the limit grew by one per `limit` successes all the
 * way, a server that takes five requests at once would be idle for a fifth of its time.
 *
 * A request that was sent before a cut shows nothing about the limit after it, so one burst of refusals
 * cuts once. Cuts are numbered instead of timed: two events in one millisecond keep their order, and a
 * clock that steps back changes nothing.
 */
export class AdaptiveLimit {
  readonly max: number;
  #limit: number;
  #successes = 0;
  /** One below the limit at the last cut: the server can take about this many requests. */
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

  /** Read it when a request is sent, and pass it back with the reply. */
  get mark(): SendMark {
    return this.#mark;
  }

  onReply({ signal, mark, pauseMs, nowMs, usable = this.#limit }: LoadReply): void {
    if (signal === 'success') this.#succeed();
    if (signal !== 'overload') return;
    if (mark.cuts === this.#mark.cuts) this.#cut(Math.max(1, Math.min(usable, this.#limit)));
    if (pauseMs <= 0) return;
    const untilMs = nowMs + Math.min(pauseMs, MAX_PAUSE_MS);
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs);
  }

  /** Whether a new instance would behave in the same way, so that this one can be forgotten. */
  isFresh(nowMs: number): boolean {
    return this.#limit === this.max && nowMs >= this.#pausedUntilMs;
  }

  #succeed(): void {
    // At the maximum there is nothing to count. This is the fast path of every request.
    if (this.#limit === this.max) return;
    const needed = this.#limit < this.#bearableLimit ? 1 : this.#limit;
    if (++this.#successes < needed) return;
    this.#successes = 0;
    this.#limit++;
    this.#mark = { limit: this.#limit, cuts: this.#mark.cuts };
  }

  #cut(from: number): void {
    this.#bearableLimit = from - 1;
    this.#limit = Math.max(1, Math.floor(from / 2));
    this.#successes = 0;
    this.#mark = { limit: this.#limit, cuts: this.#mark.cuts + 1 };
  }
}
