import { isTerminal } from '../../../core/batch/status';
import type {
  Arrival,
  BatchEvidence,
  Disturbance,
  RoundEvidence,
  Tolerance,
  Violation,
} from './evidence';
import { lastSeen } from './evidence';
import { expectedLines, type ExpectedLine } from './expect';
import { requestBody } from '../round/answers';
import type { LineEndings } from './files';

/** Faults after which an attempt may have been abandoned with requests in flight. */
const UNSETTLING = [
  ...['worker', 'second-worker', 'temporal', 'supervisor', 'stack'],
  ...['to-temporal', 'to-models', 'to-all', 'gateway'],
];
/** Faults that can lose an answer on its way: they end its receiver or its connection. */
const LOSING = [
  ...['kill worker', 'kill second-worker', 'kill stack', 'freeze worker', 'freeze second-worker'],
  ...['cut to-models', 'cut to-all', 'hang to-models', 'hang to-all'],
  ...['kill gateway', 'drain gateway'],
];
/** Faults that delay requests on their way. */
const HOLDING = ['hang to-models', 'hang to-all', 'freeze gateway'];
/** How long after an outage its effect appears: the heartbeat times out and the next attempt begins. */
const AFTER_EFFECT_MS = 20_000;
/** From the mending of a link to the first answer of the database: a progress interval and a new connection. */
const UNFENCED_MS = 2_000;
/** From the return of the store to the first answer that is written: the longest pause between two tries. */
const STORE_BACK_MS = 2_500;
/** Of so many lines, one may be sent again because its dispatch and the close of its held request crossed. */
const LINES_PER_CROSSING = 200;
/** Digits of the line's position in a line id. */
const OFFSET_DIGITS = 12;
/** From a cancel to the last request of the batch (docs/design/ends.md#cancel). */
const CANCEL_LIMIT_MS = 3_000;

/** One line that was sent although an earlier request for it had not failed. */
export interface Resend {
  readonly lineId: string;
  readonly before: Arrival;
  readonly again: Arrival;
  /** The fault that excuses it. */
  readonly fault: Disturbance | null;
}

/** Checks the requests: none too often, too late or changed, and no answer lost. */
export class SendsCheck {
  readonly violations: Violation[] = [];
  readonly resends: Resend[] = [];
  readonly #round: RoundEvidence;
  readonly #byLine = new Map<string, Arrival[]>();
  /** Accusations that {@link finish} makes if there are too many. */
  readonly #crossings: (() => void)[] = [];

  constructor(round: RoundEvidence) {
    this.#round = round;
    for (const arrival of round.arrivals) {
      const known = this.#byLine.get(arrival.lineId);
      if (known === undefined) this.#byLine.set(arrival.lineId, [arrival]);
      else known.push(arrival);
    }
  }

  /** @param endings from the result files */
  check(batch: BatchEvidence, endings: LineEndings): void {
    const blame = (rule: string, detail: string): void => {
      this.violations.push({ rule, batch: batch.plan.name, detail });
    };
    const life = lifeOf(batch, this.#round.tolerance);
    const again = { blame, isThroughGateway: batch.plan.isThroughGateway === true };
    for (const line of expectedLines(batch.plan, batch.id)) {
      const arrivals = this.#byLine.get(line.lineId) ?? [];
      for (const arrival of arrivals) this.#checkArrival(arrival, { line, life, blame });
      this.#checkAgain(arrivals, line, again);
      if (endings.get(line.index) === 'unanswered')
        this.#checkLost(arrivals, { line, life, blame });
      if (endings.get(line.index) === 'answered' && line.line.kind !== 'unrouted') {
        if (arrivals.length === 0) blame('invented', `${line.line.customId} was never sent`);
      }
    }
    this.#checkCancelled(batch, blame);
  }

  /** To be called after all batches. */
  finish(): void {
    const lines = this.#round.batches.reduce((sum, { plan }) => sum + plan.lines.length, 0);
    if (this.#crossings.length <= 1 + lines / LINES_PER_CROSSING) return;
    for (const accuse of this.#crossings) accuse();
  }

  #checkArrival(arrival: Arrival, { line, life, blame }: Context): void {
    const { customId } = line.line;
    const { clockMs } = this.#round.tolerance;
    if (line.line.kind === 'unrouted') blame('unrouted', `${customId} was sent`);
    // A killed worker may have sent only a part of its request.
    else if (arrival.end === 'answered' && arrival.body !== requestBody(line)) {
      blame('body', `${customId} arrived as ${arrival.body}`);
    }
    const lateMs = arrival.atMs - life.expiresMs;
    if (lateMs > clockMs && !this.#wasHeldUp(arrival, life.expiresMs))
      blame('late', `${customId} arrived ${lateMs} ms after expires_at`);
    const afterMs = arrival.atMs - life.endSeenMs;
    const excused =
      this.#wasHeldUp(arrival, life.endSeenMs) || this.#wasUntold(arrival, life.endSeenMs);
    if (afterMs > clockMs && !excused)
      blame('after-end', `${customId} arrived ${afterMs} ms after the end`);
  }

  /** Whether it may have been sent by then: a silent link delivers what it holds when it is mended. */
  #wasHeldUp({ atMs }: Arrival, leftMs: number): boolean {
    const { disturbances, tolerance } = this.#round;
    return disturbances.some(
      ({ kind, part, fromMs, toMs }) =>
        HOLDING.includes(`${kind} ${part}`) &&
        fromMs - tolerance.clockMs <= leftMs &&
        Math.abs(atMs - toMs) <= tolerance.clockMs,
    );
  }

  /** Whether the batch ended while a worker was cut off from everything, which goes on at this moment. */
  #wasUntold({ atMs }: Arrival, endedMs: number): boolean {
    const { disturbances, tolerance } = this.#round;
    return disturbances.some(
      ({ part, fromMs, toMs }) =>
        part === 'to-all' &&
        fromMs <= endedMs &&
        atMs >= toMs - tolerance.clockMs &&
        atMs <= toMs + UNFENCED_MS,
    );
  }

  /** A request may follow one that failed; any other needs a fault at the right time. */
  #checkAgain(
    arrivals: readonly Arrival[],
    line: ExpectedLine,
    { blame, isThroughGateway }: { blame: Blame; isThroughGateway: boolean },
  ): void {
    arrivals.forEach((again, i) => {
      const before = arrivals[i - 1];
      if (before === undefined || hasFailed(before, again)) return;
      const fault = this.#excuse(before, again);
      this.resends.push({ lineId: line.lineId, before, again, fault });
      if (fault !== null) return;
      const accuse = () => blame('sent-again', `${line.line.customId}: ${describe(before, again)}`);
      if (isThroughGateway && this.#mayHaveCrossed(before)) this.#crossings.push(accuse);
      else accuse();
    });
  }

  /**
   * Whether a worker may have closed the request as one that waits at the gateway, while the report of its dispatch was
   * on its way (docs/design/held-requests.md#leaving). Then it ended soon after its arrival.
   */
  #mayHaveCrossed({ atMs, endedAtMs }: Arrival): boolean {
    return endedAtMs !== null && endedAtMs - atMs <= this.#round.tolerance.clockMs;
  }

  #excuse(before: Arrival, again: Arrival): Disturbance | null {
    const { disturbances, tolerance } = this.#round;
    const answered = before.end === 'answered' && before.final;
    const answeredMs = before.endedAtMs ?? Infinity;
    // If an attempt was abandoned at that moment, the answer was on its way when its connection ended.
    const crossed = answered && this.#wasGivenUp(before, answeredMs);
    const fits = ({ part, kind, fromMs, toMs }: Disturbance): boolean => {
      if (!UNSETTLING.includes(part) || fromMs > again.atMs) return false;
      if (!answered || crossed) return toMs >= before.atMs - AFTER_EFFECT_MS;
      // The worker was killed or frozen before it journalled the answer.
      if (!LOSING.includes(`${kind} ${part}`)) return false;
      const endMs = overMs({ part, kind, fromMs, toMs });
      return (
        before.atMs <= endMs + tolerance.clockMs && answeredMs >= this.#unwrittenSinceMs(fromMs)
      );
    };
    return disturbances.find(fits) ?? null;
  }

  /**
   * Answers after this time may not be in the journal when a worker dies at `atMs`. While the store is away,
   * no answer is written.
   */
  #unwrittenSinceMs(atMs: number): number {
    const { disturbances, tolerance } = this.#round;
    const outages = disturbances.filter(
      ({ part, fromMs, toMs }) =>
        part === 's3' && fromMs <= atMs && toMs + STORE_BACK_MS >= atMs - tolerance.lastFlushMs,
    );
    return Math.min(atMs, ...outages.map(({ fromMs }) => fromMs)) - tolerance.lastFlushMs;
  }

  /** Whether another request of the same batch was aborted at that very moment. */
  #wasGivenUp({ lineId }: Arrival, atMs: number): boolean {
    const batch = lineId.slice(0, -OFFSET_DIGITS);
    const { arrivals, tolerance } = this.#round;
    return arrivals.some(
      (other) =>
        other.end === 'aborted' &&
        other.lineId.startsWith(batch) &&
        Math.abs((other.endedAtMs ?? 0) - atMs) <= tolerance.clockMs,
    );
  }

  /** Every answer that came in time is in the files, even if the batch was stopped. */
  #checkLost(arrivals: readonly Arrival[], { line, life, blame }: Context): void {
    const { disturbances, tolerance } = this.#round;
    for (const { end, final, atMs, endedAtMs } of arrivals) {
      if (end !== 'answered' || !final || endedAtMs === null) continue;
      if (endedAtMs > life.answersUntilMs - tolerance.lastFlushMs) continue;
      const excused = disturbances.some(
        ({ part, kind, fromMs, toMs }) =>
          LOSING.includes(`${kind} ${part}`) &&
          atMs <= overMs({ part, kind, fromMs, toMs }) + tolerance.clockMs &&
          endedAtMs >= this.#unwrittenSinceMs(fromMs),
      );
      if (excused) continue;
      blame('lost-answer', `${line.line.customId} was answered at ${endedAtMs}, ${life.words}`);
    }
  }

  /** Checked only without faults nearby, because a fault may delay the notice of the cancel. */
  #checkCancelled({ plan, id, cancels }: BatchEvidence, blame: Blame): void {
    const taken = cancels.find(({ batch }) => batch?.status === 'cancelling');
    if (taken === undefined) return;
    const untilMs = taken.gotMs + CANCEL_LIMIT_MS;
    const { disturbances, arrivals } = this.#round;
    if (disturbances.some(({ fromMs, toMs }) => fromMs < untilMs && toMs > taken.sentMs - 10_000)) {
      return;
    }
    const hex = id.slice('batch_'.length);
    const late = arrivals.filter(({ lineId, atMs }) => atMs > untilMs && lineId.includes(hex));
    if (late.length > 0) blame('cancel', `${late.length} requests of ${plan.name} long after it`);
  }
}

/**
 * Until when its victim may send lines that others took over. A worker that was cut off from everything
 * cannot learn that it was overtaken: it goes on, unfenced, until the database answers it again.
 */
function overMs({ kind, part, fromMs, toMs }: Disturbance): number {
  if (kind === 'kill') return fromMs;
  return part === 'to-all' ? toMs + UNFENCED_MS : toMs;
}

type Blame = (rule: string, detail: string) => void;

interface Life {
  readonly expiresMs: number;
  /** When the batch was first seen to have ended. */
  readonly endSeenMs: number;
  /** Until when an answer had to be accepted. */
  readonly answersUntilMs: number;
  readonly words: string;
}

interface Context {
  readonly line: ExpectedLine;
  readonly life: Life;
  readonly blame: Blame;
}

function lifeOf(evidence: BatchEvidence, tolerance: Tolerance): Life {
  const batch = lastSeen(evidence);
  const expiresMs = (batch?.expires_at ?? Infinity) * 1_000;
  const end = evidence.samples.find((sample) => isTerminal(sample.batch.status));
  const cancelledMs = evidence.cancels.find(({ httpStatus }) => httpStatus === 200)?.sentMs;
  return {
    expiresMs,
    endSeenMs: end?.gotMs ?? Infinity,
    answersUntilMs: Math.min(expiresMs, (cancelledMs ?? Infinity) + tolerance.cancelGraceMs),
    words: `the batch ended ${batch?.status}, expires ${expiresMs}, cancelled ${String(cancelledMs)}`,
  };
}

function hasFailed(before: Arrival, again: Arrival): boolean {
  if (before.end === 'dropped') return true;
  const over = before.end === 'answered' && (before.endedAtMs ?? Infinity) <= again.atMs;
  return over && !before.final;
}

function describe(before: Arrival, again: Arrival): string {
  const ended = `${before.end}${before.final ? ' for good' : ''} at ${String(before.endedAtMs)}`;
  return `sent at ${before.atMs}, ${ended}, and again at ${again.atMs}`;
}
