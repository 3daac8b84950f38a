/** What counts against a gateway: no connection, a broken one, or a status of a gateway without its server. */
export type BreakerFailureKind = 'connect' | 'connection' | 502 | 503 | 504;

/** `go`: send. `probe`: send this one, alone, and report it as probe. `wait`: nothing until `retryAtMs`. */
export type Admission = 'go' | 'probe' | 'wait';

/** Pauses of a breaker, from the settings of its gateway. */
export interface BreakerOptions {
  /** First pause before a probe, ms; doubles with each failed probe. */
  readonly initialBackoffMs: number;
  /** Longest pause between probes, ms. */
  readonly maxBackoffMs: number;
  /** A probe that nobody reported for this long is taken for lost, ms. */
  readonly probeTimeoutMs: number;
  /** Told when it opens and when it closes again; must not throw. */
  readonly onChange?: (state: Breaker['state']) => void;
}

/** One failed try of one line. */
export interface BreakerFailure {
  readonly lineId: string;
  readonly kind: BreakerFailureKind;
  readonly nowMs: number;
  /** Whether `admit` had answered `probe` for this request. */
  readonly probe?: boolean;
}

/** Holds back a gateway that is away, so that it does not burn a batch (execution §3 "Breaker"). */
export interface Breaker {
  readonly state: 'closed' | 'open';
  /** When `admit` may next answer something other than `wait`, Unix ms; 0 while closed. */
  readonly retryAtMs: number;
  /** Begin of the present run of failures, Unix ms, or null after a success. */
  readonly failingSinceMs: number | null;
  /**
   * The gateway may be away, though not for long enough to open: until that is decided, no line may
   * end for want of tries (a connection that cannot be made at all is enough to suspect it).
   */
  readonly suspect: boolean;
  /** When the latest of the successful requests was sent, Unix ms; null before the first. */
  readonly lastSuccessSentMs: number | null;
  /** Asks leave for one request. `probe` must be followed by exactly one report. */
  admit(nowMs: number): Admission;
  /** An answer that shows a living server, whatever its status. Closes the breaker. */
  onSuccess(sentMs: number): void;
  onFailure(failure: BreakerFailure): void;
  /** The probe ended without telling anything: aborted or never sent. */
  onProbeLost(nowMs: number): void;
}

const MIN_FAILURES = 5;
const MIN_SPAN_MS = 10_000;
const MIN_LINES = 3;

/**
 * A closed breaker. Table (execution §3):
 *
 * | state | event | then |
 * |---|---|---|
 * | closed | ≥ 5 failures in a row, ≥ 10 s apart, of ≥ 3 lines (or ≥ 5 of them never connected) | open, first probe after `initialBackoffMs` |
 * | closed, open | success | closed, run forgotten |
 * | open, no probe out | `admit` at or after `retryAtMs` | `probe` |
 * | open, probe out | probe fails | pause doubles, at most `maxBackoffMs` |
 * | open, probe out | `probeTimeoutMs` passes | as if it had failed |
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
