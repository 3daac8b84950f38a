/** What counts against a gateway: no connection, a broken one, or a status of a gateway without its server. */
export type BreakerFailureKind = 'connect' | 'connection' | 502 | 503 | 504;

/** `go`: send. `probe`: send this one, alone, and report it as probe. `wait`: nothing until `retryAtMs`. */
export type Admission = 'go' | 'probe' | 'wait';

export interface BreakerOptions {
  /** First pause before a probe, ms; doubles with each failed probe. */
  readonly initialBackoffMs: number;
  /** Longest pause between probes, ms. */
  readonly maxBackoffMs: number;
  /** A probe that nobody reported for this long is taken for lost, ms. */
  readonly probeTimeoutMs: number;
}

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
  /** Asks leave for one request. `probe` must be followed by exactly one report. */
  admit(nowMs: number): Admission;
  /** An answer that shows a living server, whatever its status. Closes the breaker. */
  onSuccess(): void;
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
  const run = { count: 0, connects: 0, sinceMs: 0, lines: new Set<string>() };
  let open = false;
  let pauseMs = options.initialBackoffMs;
  let nextProbeMs = 0;
  let probeUntilMs: number | null = null;

  const count = ({ lineId, kind, nowMs }: BreakerFailure): void => {
    if (run.count === 0) run.sinceMs = nowMs;
    run.count++;
    if (kind === 'connect') run.connects++;
    if (run.lines.size < MIN_LINES) run.lines.add(lineId);
  };
  const isBroken = (nowMs: number): boolean =>
    run.count >= MIN_FAILURES &&
    nowMs - run.sinceMs >= MIN_SPAN_MS &&
    (run.lines.size >= MIN_LINES || run.connects >= MIN_FAILURES);
  const pause = (nowMs: number): void => {
    probeUntilMs = null;
    nextProbeMs = nowMs + pauseMs;
    pauseMs = Math.min(options.maxBackoffMs, Math.max(1, pauseMs * 2));
  };

  return {
    get state() {
      return open ? 'open' : 'closed';
    },
    get retryAtMs() {
      return open ? (probeUntilMs ?? nextProbeMs) : 0;
    },
    get suspect() {
      return run.connects > 0 || (run.count >= MIN_FAILURES && run.lines.size >= MIN_LINES);
    },
    get failingSinceMs() {
      return run.count === 0 ? null : run.sinceMs;
    },
    admit: (nowMs) => {
      if (!open) return 'go';
      if (probeUntilMs !== null && nowMs >= probeUntilMs) pause(nowMs);
      if (probeUntilMs !== null || nowMs < nextProbeMs) return 'wait';
      probeUntilMs = nowMs + options.probeTimeoutMs;
      return 'probe';
    },
    onSuccess: () => {
      run.count = run.connects = 0;
      run.lines.clear();
      open = false;
      probeUntilMs = null;
    },
    onFailure: (failure) => {
      count(failure);
      if (open) {
        if (failure.probe === true) pause(failure.nowMs);
      } else if (isBroken(failure.nowMs)) {
        open = true;
        pauseMs = Math.min(options.initialBackoffMs, options.maxBackoffMs);
        pause(failure.nowMs);
      }
    },
    onProbeLost: (nowMs) => {
      if (open && probeUntilMs !== null) {
        probeUntilMs = null;
        nextProbeMs = nowMs;
      }
    },
  };
}
