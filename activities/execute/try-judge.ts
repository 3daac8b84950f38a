import { gatewayHealth, isUnserved } from '../../core/dispatch/outcome';
import type { BackoffInput } from '../../core/dispatch/retry';
import { backoffMs, costOf, isRetryable, nextTry } from '../../core/dispatch/retry';
import { lineId } from '../../core/names/ids';
import type { BackendOutcome } from '../../inference/backend';
import type { Route } from '../../inference/registry';
import type { Chunk } from './chunk';
import type { ChunkLine } from './chunk-ledger';
import type { SentTry } from './try-result';

/** What follows from a try. `final`: its outcome is the line's answer. */
export type TryVerdict =
  | { readonly kind: 'final' }
  | { readonly kind: 'retry'; readonly atMs: number }
  | { readonly kind: 'unanswered' };

interface JudgedTry extends Pick<SentTry, 'outcome' | 'how'> {
  /** The outcome counts as a failure of the gateway, not of the line. */
  readonly away: boolean;
  /** The outcome may use up a try of the line. */
  readonly counted: boolean;
}

const FINAL: TryVerdict = { kind: 'final' };
/** If fewer lines are open, they do not wait for a gateway that is away: they end when their tries are used up. */
const MIN_LINES_WORTH_WAITING = 20;
/** Longest pause of a line that found no connection. */
const MAX_UNCONNECTED_PAUSE_MS = 5_000;

/**
 * Decides whether a line is tried again, and reports to the circuit breaker what the try shows about the
 * gateway (docs/design/execution.md#retries).
 */
export class TryJudge {
  readonly #chunk: Chunk;
  readonly #route: Route;

  constructor({ chunk, route }: { readonly chunk: Chunk; readonly route: Route }) {
    this.#chunk = chunk;
    this.#route = route;
  }

  /** Counts the try at its line and decides what follows. Call it once for each try that was sent. */
  judge(line: ChunkLine, sent: SentTry): TryVerdict {
    // Runs for every request, so it spreads no objects and decides the usual case at once.
    const { outcome, how, limit } = sent;
    const away = this.#reportToBreaker(line, sent);
    const counted = countTry(line, { outcome, how, limit, away });
    if (away && line.failingSinceMs === 0) line.failingSinceMs = Date.now();
    if (outcome.kind === 'answer' && !away && !this.#isRetryable(outcome)) return FINAL;
    return this.#verdict(line, { outcome, how, away, counted });
  }

  /** True if the outcome counts as a failure of the gateway. */
  #reportToBreaker(line: ChunkLine, { outcome, how: { probe }, sentMs }: SentTry): boolean {
    const { breaker } = this.#route;
    const health = gatewayHealth(outcome);
    const nowMs = Date.now();
    if (health === 'alive') breaker.onSuccess(sentMs);
    else if (health !== 'unknown') {
      const id = lineId(this.#chunk.batchId, line.offset);
      breaker.onFailure({ lineId: id, kind: health, nowMs, probe });
      return true;
    } else if (probe) breaker.onProbeLost(nowMs);
    return false;
  }

  #verdict(line: ChunkLine, judged: JudgedTry): TryVerdict {
    const { outcome, how, counted, away } = judged;
    if (outcome.kind === 'failure' && outcome.reason === 'aborted') return { kind: 'unanswered' };
    // After a stop nothing is retried: the end of the batch gives the line its error code.
    if (how.stopping() && this.#isRetryable(outcome)) return { kind: 'unanswered' };
    const clock = { nowMs: Date.now(), random: Math.random(), gateway: this.#route.gateway };
    if (line.unconnected > 0) return this.#untilConnected(line, clock);
    const next = nextTry({
      outcome,
      attempt: Math.max(counted ? 1 : 0, line.tries),
      refusals: line.refusals,
      unserved: line.unserved,
      counted,
      deadlineMs: this.#chunk.deadlineMs,
      ...clock,
    });
    // The next try would come after the deadline: the end of the batch gives the line its error code.
    if (next.kind === 'expired') return { kind: 'retry', atMs: this.#chunk.deadlineMs };
    if (next.kind === 'retry') return next;
    return away && this.#seemsAway(line, how) ? uncountTry(line, outcome, clock) : FINAL;
  }

  #isRetryable(outcome: BackendOutcome): boolean {
    return isRetryable(outcome, { isPastDeadline: Date.now() >= this.#chunk.deadlineMs });
  }

  /** Retries until the gateway can be reached or the batch ends, because nothing of the request was sent. */
  #untilConnected(
    line: ChunkLine,
    clock: Omit<BackoffInput, 'attempt' | 'retryAfter'>,
  ): TryVerdict {
    const { initial_backoff } = clock.gateway;
    // A short pause does no harm while the gateway is away, because its breaker soon lets only one probe
    // through. It lets the lines go on soon after the gateway is back.
    const max_backoff = Math.min(clock.gateway.max_backoff, MAX_UNCONNECTED_PAUSE_MS);
    const gateway = { initial_backoff, max_backoff };
    const pauseMs = backoffMs({ ...clock, gateway, attempt: line.unconnected, retryAfter: null });
    return { kind: 'retry', atMs: Math.min(clock.nowMs + pauseMs, this.#chunk.deadlineMs) };
  }

  /**
   * Whether the line's last failure means that the gateway is away. It does if the try was a probe. It also
   * does if the gateway is suspect, no request that was sent after the line's first failure succeeded, and
   * enough lines are open to make waiting worthwhile. If only a few requests are left and their server can
   * never handle them, it looks just like a server that is away. Such lines end when their tries are used up.
   */
  #seemsAway(line: ChunkLine, how: SentTry['how']): boolean {
    if (how.probe) return true;
    const { breaker } = this.#route;
    if (!breaker.suspect || how.openLines() < MIN_LINES_WORTH_WAITING) return false;
    return (breaker.lastSuccessSentMs ?? 0) <= line.failingSinceMs;
  }
}

/** Counts the try or the refusal; true if the outcome may use up a try. */
function countTry(
  line: ChunkLine,
  { outcome, how, limit, away }: Omit<SentTry, 'sentMs'> & { readonly away: boolean },
): boolean {
  line.unconnected = isUnconnected(outcome) ? line.unconnected + 1 : 0;
  line.unserved = isUnserved(outcome) ? line.unserved + 1 : 0;
  const cost = costOf({ outcome, limit, refusals: line.refusals });
  if (cost === 'refusal') line.refusals++;
  // A request that never reached the gateway does not count, and neither does a failed probe.
  if (cost === 'try' && line.unconnected === 0 && !(away && how.probe)) line.tries++;
  return cost === 'try';
}

/** Does not count a last try that failed because the gateway is away, so that the line is tried again. */
function uncountTry(
  line: ChunkLine,
  outcome: BackendOutcome,
  clock: Omit<BackoffInput, 'attempt' | 'retryAfter'>,
): TryVerdict {
  line.tries = Math.max(0, line.tries - 1);
  const attempt = Math.max(1, line.tries + line.refusals);
  const retryAfter = outcome.kind === 'answer' ? outcome.retryAfter : null;
  return { kind: 'retry', atMs: clock.nowMs + backoffMs({ attempt, retryAfter, ...clock }) };
}

/** Whether no connection could be made, so that nothing of the request was sent. */
function isUnconnected(outcome: BackendOutcome): boolean {
  return outcome.kind === 'failure' && outcome.reason === 'connect';
}
