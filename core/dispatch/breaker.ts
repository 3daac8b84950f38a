/** Failures that count: no connection, a broken connection, or the status of a proxy without its server. */
export type BreakerFailureKind = 'connect' | 'connection' | 502 | 503 | 504;

/** `go`: send. `probe`: send this one and report it as a probe. `wait`: send nothing until `retryAtMs`. */
export type Admission = 'go' | 'probe' | 'wait';

/** The pauses of a breaker, from the settings of its gateway. */
export interface BreakerOptions {
  /** Pause before the first probe, ms; it doubles with each failed probe. */
  readonly initialBackoffMs: number;
  /** Longest pause between probes, ms. */
  readonly maxBackoffMs: number;
  /** A probe without a report for this long counts as failed, ms. */
  readonly probeTimeoutMs: number;
  /** Called when it opens and when it closes; must not throw. */
  readonly onChange?: (state: Breaker['state']) => void;
}

/** One failed try of one line. */
export interface BreakerFailure {
  readonly lineId: string;
  readonly kind: BreakerFailureKind;
  readonly nowMs: number;
  /** Whether `admit` had returned `probe` for this request. */
  readonly probe?: boolean;
}

/** Stops sending to a gateway that does not answer (docs/design/execution.md#circuit-breaker). */
export interface Breaker {
  readonly state: 'closed' | 'open';
  /** When `admit` may next return something other than `wait`, Unix ms; 0 while closed. */
  readonly retryAtMs: number;
  /** Start of the current run of failures, Unix ms; null after a success. */
  readonly failingSinceMs: number | null;
  /**
   * The gateway may be down, but not for long enough yet to open the breaker. Meanwhile, no line should end
   * because its tries are used up. One refused connection is enough to make a gateway suspect.
   */
  readonly suspect: boolean;
  /** When the latest successful request was sent, Unix ms; null before the first success. */
  readonly lastSuccessSentMs: number | null;
  /** Asks whether one request may be sent. `probe` must be followed by exactly one report. */
  admit(nowMs: number): Admission;
  /** Reports a reply that shows a running server, with any status. Closes the breaker. */
  onSuccess(sentMs: number): void;
  onFailure(failure: BreakerFailure): void;
  /** Reports that the probe was aborted or never sent, so that another one may be sent. */
  onProbeLost(nowMs: number): void;
}

const MIN_FAILURES = 5;
const MIN_SPAN_MS = 10_000;
const MIN_LINES = 3;

/**
 * Creates a closed circuit breaker.
 *
 * A model server that restarts must not use up the tries of a whole batch: 10,000 waiting lines with
 * four tries each would all end as errors within minutes. But a breaker that opens too easily stops
 * healthy servers, because one bad request can break its connection again and again. So the breaker opens
 * after failures in a row, of at least three lines, over at least 10 s. Refused connections may be of one
 * line, because no request can cause them. While the breaker is open, it admits one probe at a time.
 *
 * | state | event | then |
 * |---|---|---|
 * | closed | ≥ 5 failures in a row, over ≥ 10 s, of ≥ 3 lines (or ≥ 5 of them without a connection) | open, first probe after `initialBackoffMs` |
 * | closed, open | success | closed, the run of failures is forgotten |
 * | open, no probe in flight | `admit` at or after `retryAtMs` | `probe` |
 * | open, probe in flight | the probe fails | the pause doubles, to `maxBackoffMs` at most |
 * | open, probe in flight | `probeTimeoutMs` passes | as if it had failed |
 */
export function createBreaker(options: BreakerOptions): Breaker {
  return new CountingBreaker(options);
}

class CountingBreaker implements Breaker {
  readonly #options: BreakerOptions;
  readonly #lines = new Set<string>();
  #failures = 0;
  #connectFailures = 0;
  #sinceMs = 0;
  #open = false;
  #lastSuccessSentMs: number | null = null;
  #pauseMs = 0;
  #nextProbeMs = 0;
  #probeUntilMs: number | null = null;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  get state(): 'closed' | 'open' {
    return this.#open ? 'open' : 'closed';
  }

  get retryAtMs(): number {
    return this.#open ? (this.#probeUntilMs ?? this.#nextProbeMs) : 0;
  }

  get failingSinceMs(): number | null {
    return this.#failures === 0 ? null : this.#sinceMs;
  }

  get lastSuccessSentMs(): number | null {
    return this.#lastSuccessSentMs;
  }

  get suspect(): boolean {
    const manyFailed = this.#failures >= MIN_FAILURES && this.#lines.size >= MIN_LINES;
    return this.#connectFailures > 0 || manyFailed;
  }

  admit(nowMs: number): Admission {
    if (!this.#open) return 'go';
    if (this.#probeUntilMs !== null && nowMs >= this.#probeUntilMs) this.#pause(nowMs);
    if (this.#probeUntilMs !== null || nowMs < this.#nextProbeMs) return 'wait';
    this.#probeUntilMs = nowMs + this.#options.probeTimeoutMs;
    return 'probe';
  }

  onSuccess(sentMs: number): void {
    this.#lastSuccessSentMs = Math.max(sentMs, this.#lastSuccessSentMs ?? 0);
    this.#failures = 0;
    this.#connectFailures = 0;
    this.#lines.clear();
    this.#probeUntilMs = null;
    if (!this.#open) return;
    this.#open = false;
    this.#options.onChange?.('closed');
  }

  onFailure(failure: BreakerFailure): void {
    this.#count(failure);
    if (this.#open) {
      if (failure.probe === true) this.#pause(failure.nowMs);
    } else if (this.#isBroken(failure.nowMs)) {
      this.#open = true;
      this.#pauseMs = Math.min(this.#options.initialBackoffMs, this.#options.maxBackoffMs);
      this.#pause(failure.nowMs);
      this.#options.onChange?.('open');
    }
  }

  onProbeLost(nowMs: number): void {
    if (!this.#open || this.#probeUntilMs === null) return;
    this.#probeUntilMs = null;
    this.#nextProbeMs = nowMs;
  }

  #count({ lineId, kind, nowMs }: BreakerFailure): void {
    if (this.#failures === 0) this.#sinceMs = nowMs;
    this.#failures++;
    if (kind === 'connect') this.#connectFailures++;
    if (this.#lines.size < MIN_LINES) this.#lines.add(lineId);
  }

  #isBroken(nowMs: number): boolean {
    return (
      this.#failures >= MIN_FAILURES &&
      nowMs - this.#sinceMs >= MIN_SPAN_MS &&
      (this.#lines.size >= MIN_LINES || this.#connectFailures >= MIN_FAILURES)
    );
  }

  #pause(nowMs: number): void {
    this.#probeUntilMs = null;
    this.#nextProbeMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(this.#options.maxBackoffMs, Math.max(1, this.#pauseMs * 2));
  }
}
