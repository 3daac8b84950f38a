import type { StopCause } from '../../core/batch/status';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import { holdLimitMs } from '../../core/chunks/hold-limit';
import { LinkedList } from '../../core/dispatch/queue/linked-list';
import type { Permit } from '../../inference/dispatcher';
import type { Route } from '../../inference/registry';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { AdmissionQueue } from './admission-queue';
import type { EncodedFrame } from './answer-frames';
import { AutoResetEvent } from './auto-reset-event';
import type { CancelReason } from './cancel-reason';
import type { Chunk } from './chunk';
import type { LineCosts } from './chunk-costs';
import { ChunkExit } from './chunk-exit';
import { ChunkJournal } from './chunk-journal';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';
import { ChunkPermits } from './chunk-permits';
import type { ExecuteDeps } from './deps';
import type { ExclusiveGate } from './exclusive-gate';
import { LatencyWindow } from './latency-window';
import { LineQueue } from './line-queue';
import type { LineRun } from './line-run';
import type { LineSender } from './line-sender';
import type { LineTry, TryRun } from './line-try';
import { permitWait } from './permit-wait';
import { requestTimeoutOf } from './request-timeout';
import type { TryResult } from './try-result';

/** What a run needs. */
export interface ChunkRunOptions {
  readonly chunk: Chunk;
  /** Which attempt of the chunk this is, from 1. */
  readonly attempt: number;
  /** After this time Temporal ends the attempt as failed, ms. */
  readonly attemptLimitMs: number;
  readonly deps: ExecuteDeps;
  readonly route: Route;
  readonly ledger: ChunkLedger;
  readonly writer: JournalWriter;
  readonly lease: ChunkLease;
  readonly sender: LineSender;
  readonly costs: LineCosts;
  /** Shared by all chunks of this process, like the gate. */
  readonly admissionQueue: AdmissionQueue;
  readonly gate: ExclusiveGate;
}

/** If the breaker's next probe is later than this, a chunk that may wait does so at the server. */
const LONG_UNTIL_PROBE_MS = 2_000;
/** If nothing of an overdue chunk is held, and nothing will be sent for this long, the chunk leaves. */
const LONG_REST_MS = 2_000;
/** Longest sleep of the loop, which polls conditions that have no event, such as followers that wait for a leader. */
const MAX_SLEEP_MS = 250;
/** Pause of a line whose try failed before it was sent, for example because its input is unreadable. */
const FAILED_TRY_PAUSE_MS = 1_000;

/**
 * Sends the lines of one chunk until it must exit (docs/design/execution.md#chunks-and-time-slices).
 *
 * States: sending → exiting ({@link ChunkExit} has a reason: no new try begins, and requests in flight are
 * finished or aborted) → done.
 */
export class ChunkRun implements LineRun, TryRun {
  readonly #o: ChunkRunOptions;
  readonly #queue: LineQueue;
  readonly #journal: ChunkJournal;
  readonly #changed = new AutoResetEvent();
  readonly #latency = new LatencyWindow();
  readonly #startedMs = Date.now();
  readonly #exit: ChunkExit;
  readonly #permits: ChunkPermits;
  readonly #openInModel: number;
  /** Set for a chunk of one suspect line. */
  readonly #suspect: symbol | null;
  readonly #tries = new LinkedList<LineTry>();
  #isSending = false;
  #answered = 0;
  /** Why the latest try failed before it was sent; null if it was sent. */
  #trouble: string | null = null;

  constructor(options: ChunkRunOptions) {
    this.#o = options;
    const { chunk, deps, ledger } = options;
    this.#suspect = chunk.exclusive ? Symbol('suspect') : null;
    this.#openInModel = chunk.openInModel ?? ledger.open;
    this.#journal = new ChunkJournal(options);
    const maxBackingOff = 2 * deps.config.concurrency.per_model;
    this.#queue = new LineQueue(ledger, maxBackingOff, options.attempt - 1);
    this.#exit = new ChunkExit({
      ...options,
      holdLimitMs: holdLimitMs({
        timeSliceMs: chunk.timeSliceMs,
        attemptLimitMs: options.attemptLimitMs,
        requestTimeoutMs: requestTimeoutOf(options.route.gateway, chunk.endpoint),
      }),
      awaitsFirstAnswer: () => this.#answered === 0 && this.inFlight > 0,
      onExit: () => this.#onExit(),
      onGiveUpHeld: () => {
        for (const attempt of this.#tries.toArray()) attempt.closeIfHeld();
      },
      onAbort: () => {
        for (const attempt of this.#tries.toArray()) attempt.abort();
      },
    });
    this.#permits = new ChunkPermits({
      ...options,
      dispatcher: deps.dispatcher,
      exit: this.#exit,
    });
  }

  get inFlight(): number {
    return this.#tries.size;
  }

  get answered(): number {
    return this.#answered;
  }

  get nextDueMs(): number | null {
    return this.#queue.nextDueMs;
  }

  get p95Ms(): number | null {
    return this.#latency.p95Ms;
  }

  get stopCause(): StopCause | null {
    return this.#exit.stopCause;
  }

  get ratePerSec(): number | null {
    const seconds = (Date.now() - this.#startedMs) / 1000;
    return this.#answered === 0 ? null : this.#answered / Math.max(seconds, 0.001);
  }

  get waitsFor(): string | null {
    const { route, lease, deps, chunk } = this.#o;
    if (route.breaker.state === 'open') return `gateway ${route.key}: it does not answer`;
    if (this.#exit.reason !== null) return null;
    if (!lease.maySend()) return 'PostgreSQL: this process was frozen and must confirm its chunks';
    const limit = deps.dispatcher.limitOf(route.limiterKey);
    return this.#trouble ?? permitWait(chunk.model, limit, this.#permits.isWaiting);
  }

  get abort(): AbortSignal {
    return this.#exit.abort;
  }

  maySend(): boolean {
    const { lease, chunk } = this.#o;
    return lease.maySend() && Date.now() < chunk.deadlineMs;
  }

  isLeaving(): boolean {
    return this.#exit.givesUpHeld;
  }

  stopping(): boolean {
    return this.#exit.stopCause !== null;
  }

  openLines(): number {
    return this.#openInModel - this.#answered;
  }

  async run(): Promise<ExitReason> {
    if (this.#o.chunk.mayBePoison && this.#journal.provesPoison) return this.#endPoisonLine();
    this.#exit.watch();
    if (this.#suspect !== null) this.#o.gate.request(this.#suspect);
    try {
      await this.#sendAll();
      await this.#finishInFlight();
      this.#noteBackoffs();
    } finally {
      if (this.#suspect !== null) this.#o.gate.release(this.#suspect);
      this.#exit.close();
    }
    return this.#exit.reason ?? EXIT_REASON.done;
  }

  onCancelled(reason: CancelReason): void {
    this.#exit.onCancelled(reason);
  }

  /** Ends the chunk's only line as `internal_error`. */
  async #endPoisonLine(): Promise<ExitReason> {
    const line = this.#o.ledger.line(0);
    this.#recordAnswer(line, await this.#o.sender.poisonAnswer(line));
    return EXIT_REASON.done;
  }

  #recordAnswer(line: ChunkLine, frame: EncodedFrame): void {
    this.#journal.recordAnswer(line, frame);
    this.#answered++;
    this.#exit.onAnswer();
  }

  /** Waits while nothing can be sent. Tries that end send the next lines themselves. */
  async #sendAll(): Promise<void> {
    for (;;) {
      this.#sendLines();
      if (this.#exit.reason !== null) return;
      const nowMs = Date.now();
      if (!this.#permits.isWaiting) {
        if (this.#queue.isEmpty && this.inFlight === 0) return;
        if (this.#isProbeFarOff(nowMs)) return this.#exit.exit(EXIT_REASON.breakerOpen);
        if (this.#exit.isOverdue && this.#restsUntil(nowMs + LONG_REST_MS)) this.#exit.onRest();
      }
      await this.#changed.wait(this.#sleepMs(nowMs));
    }
  }

  /**
   * Sends lines until none may go, or a line waits for its permit. A try that ends at once comes back here, and leaves
   * the next line to the loop that began it.
   */
  #sendLines(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      while (this.#sendNext());
    } finally {
      this.#isSending = false;
    }
  }

  /** Whether another line may go. */
  #sendNext(): boolean {
    if (this.#exit.reason !== null || this.#permits.isWaiting) return false;
    const nowMs = Date.now();
    // In addition to the timer, which may fire late: nothing is sent after the deadline.
    if (nowMs >= this.#o.chunk.deadlineMs) this.#exit.stop('expired');
    else if (this.#o.lease.unconfirmed) this.#exit.exit(EXIT_REASON.unconfirmed);
    else if (this.#mayTry(nowMs)) return this.#sendLine(nowMs);
    return false;
  }

  #sendLine(nowMs: number): boolean {
    const line = this.#nextLine(nowMs);
    if (line === null) return false;
    const permit = this.#permits.tryAcquire(line);
    if (permit !== null) return this.#begin(line, permit);
    this.#permits.wait(line, (granted) => this.#onWaited(line, granted));
    return false;
  }

  #onWaited(line: ChunkLine, permit: Permit | null): void {
    if (permit === null) this.#queue.putBack(line);
    else if (this.#begin(line, permit)) this.#sendLines();
    this.#wake();
  }

  #onExit(): void {
    this.#permits.stop();
    this.#changed.set();
  }

  /** Whether the chunk should wait for the next probe at the server, because it can do nothing until then. */
  #isProbeFarOff(nowMs: number): boolean {
    const { chunk, route } = this.#o;
    if (!chunk.mayWait || this.#answered > 0 || this.inFlight > 0) return false;
    const { state, retryAtMs } = route.breaker;
    return state === 'open' && retryAtMs - nowMs > LONG_UNTIL_PROBE_MS;
  }

  /** Whether nothing is in flight, and nothing can be sent before `untilMs`. */
  #restsUntil(untilMs: number): boolean {
    const { state, retryAtMs } = this.#o.route.breaker;
    const nextMs = state === 'open' ? retryAtMs : (this.#queue.nextDueMs ?? 0);
    return this.inFlight === 0 && nextMs > untilMs;
  }

  #nextLine(nowMs: number): ChunkLine | null {
    const isAway = this.#o.route.breaker.state === 'open';
    return isAway ? this.#queue.takeForProbe(nowMs) : this.#queue.take(nowMs);
  }

  #mayTry(nowMs: number): boolean {
    const { lease, route, gate } = this.#o;
    if (!gate.mayBegin(this.#suspect)) return false;
    if (!lease.maySend() || !this.#journal.hasRoom) return false;
    return route.breaker.state === 'closed' || nowMs >= route.breaker.retryAtMs;
  }

  #sleepMs(nowMs: number): number {
    // While a line waits for its permit, no other one can be sent.
    const dueMs = this.#permits.isWaiting ? null : this.#queue.nextDueMs;
    return Math.min(MAX_SLEEP_MS, dueMs === null ? Infinity : Math.max(1, dueMs - nowMs));
  }

  /** Begins a try; false if the line may not go after all. */
  #begin(line: ChunkLine, permit: Permit): boolean {
    // Check again: a suspect line may have requested an exclusive send while this line waited for its permit.
    const mayBegin = this.#o.gate.mayBegin(this.#suspect);
    const admission = mayBegin ? this.#o.route.breaker.admit(Date.now()) : 'wait';
    if (admission === 'wait') {
      this.#queue.putBack(line);
      permit.release();
      return false;
    }
    const attempt = this.#o.sender.try(this, { line, permit, probe: admission === 'probe' });
    this.#tries.push(attempt);
    this.#queue.onSent(line, Date.now());
    this.#o.gate.enter();
    if (this.#suspect === null) attempt.start();
    else void this.#startAlone(attempt);
    return true;
  }

  async #startAlone(attempt: LineTry): Promise<void> {
    try {
      await this.#journal.noteExclusiveSend(attempt.line);
      attempt.start();
    } catch (error) {
      attempt.fail(error);
    }
  }

  onTryEnded(ended: LineTry, result: TryResult): void {
    try {
      this.#record(ended, result);
    } catch (error) {
      this.#failTry(ended.line, error);
    }
    this.#leave(ended);
  }

  onTryFailed(failed: LineTry, error: unknown): void {
    this.#failTry(failed.line, error);
    this.#leave(failed);
  }

  #record({ line, startedMs }: LineTry, result: TryResult): void {
    this.#trouble = null;
    if (this.#suspect !== null && result.kind !== 'answered') this.#journal.noteBackoff(line);
    if (result.kind === 'retry') {
      line.notBeforeMs = result.atMs;
      this.#queue.putBack(line);
      if (line.unserved > 0) this.#exit.onDrop();
    } else if (result.kind === 'answered') {
      this.#latency.add(Math.max(0, performance.now() - startedMs - result.queueMs));
      this.#recordAnswer(line, result.frame);
    }
  }

  /** Releases the permit of a try that is over, and sends what may go now. */
  #leave(ended: LineTry): void {
    if (this.#suspect !== null) this.#journal.flushOutcome();
    this.#tries.remove(ended);
    this.#queue.onEnded(ended.line);
    this.#o.gate.leave();
    ended.permit.release();
    this.#sendLines();
    this.#wake();
  }

  /** Lets the loop look again: nothing is in flight, or a line may be due before the loop would look by itself. */
  #wake(): void {
    const isUrgent = this.inFlight === 0 || this.#queue.nextDueMs !== null;
    if (isUrgent && !this.#permits.isWaiting) this.#changed.set();
  }

  /** Pauses a line whose try failed before it was sent. Such a try does not count. */
  #failTry(line: ChunkLine, error: unknown): void {
    if (this.#suspect !== null) this.#journal.noteBackoff(line);
    if (this.#exit.abort.aborted) return;
    if (this.#trouble === null) {
      // Log it once, not for every line each second, until a line could be sent again.
      this.#o.deps.logger.warn({ err: error, position: line.position }, 'lines cannot be tried');
    }
    this.#trouble = `trying a line: ${error instanceof Error ? error.message : String(error)}`;
    line.notBeforeMs = Date.now() + FAILED_TRY_PAUSE_MS;
    this.#queue.putBack(line);
  }

  async #finishInFlight(): Promise<void> {
    while (this.inFlight > 0) await this.#changed.wait(MAX_SLEEP_MS);
  }

  /**
   * Writes retry frames, so that lines in backoff keep their tries, refusals and pause in the next attempt.
   * Without the refusals, a line that its server always refuses would get 20 new ones with each chunk.
   */
  #noteBackoffs(): void {
    for (const line of this.#queue.backingOff) {
      if (line.tries + line.refusals > 0) this.#journal.noteBackoff(line);
    }
  }
}
