import type { StopCause } from '../../core/batch/status';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import { holdLimitMs } from '../../core/chunks/hold-limit';
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
import type { TryOptions } from './line-try';
import { permitWait } from './permit-wait';
import { requestTimeoutOf } from './request-timeout';

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
export class ChunkRun implements LineRun {
  readonly #o: ChunkRunOptions;
  readonly #queue: LineQueue;
  readonly #journal: ChunkJournal;
  readonly #changed = new AutoResetEvent();
  readonly #latency = new LatencyWindow();
  readonly #startedMs = Date.now();
  readonly #exit: ChunkExit;
  readonly #permits: ChunkPermits;
  readonly #openInModel: number;
  readonly #tryOptions: Omit<TryOptions, 'probe' | 'load'>;
  /** Set for a chunk of one suspect line. */
  readonly #suspect: symbol | null;
  #inFlight = 0;
  #answered = 0;
  /** Why the latest try failed before it was sent; null if it was sent. */
  #trouble: string | null = null;

  constructor(options: ChunkRunOptions) {
    this.#o = options;
    const { chunk, deps, ledger, lease } = options;
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
      awaitsFirstAnswer: () => this.#answered === 0 && this.#inFlight > 0,
      onExit: () => this.#changed.set(),
    });
    this.#permits = new ChunkPermits({
      ...options,
      dispatcher: deps.dispatcher,
      exit: this.#exit,
    });
    this.#tryOptions = {
      signal: this.#exit.abort,
      leaving: this.#exit.exiting,
      stopping: () => this.#exit.stopCause !== null,
      maySend: () => lease.maySend() && Date.now() < chunk.deadlineMs,
      openLines: () => this.#openInModel - this.#answered,
    };
  }

  get inFlight(): number {
    return this.#inFlight;
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

  async #sendAll(): Promise<void> {
    while (this.#exit.reason === null) {
      // In addition to the timer, which may fire late: nothing is sent after the deadline.
      if (Date.now() >= this.#o.chunk.deadlineMs) return this.#exit.stop('expired');
      if (this.#o.lease.unconfirmed) return this.#exit.exit(EXIT_REASON.unconfirmed);
      if (this.#queue.isEmpty && this.#inFlight === 0) return;
      const nowMs = Date.now();
      const line = this.#mayTry(nowMs) ? this.#nextLine(nowMs) : null;
      if (line === null) {
        if (this.#isProbeFarOff(nowMs)) return this.#exit.exit(EXIT_REASON.breakerOpen);
        if (this.#exit.isOverdue && this.#restsUntil(nowMs + LONG_REST_MS)) this.#exit.onRest();
        await this.#changed.wait(this.#sleepMs(nowMs));
        continue;
      }
      const permit = this.#permits.tryAcquire(line) ?? (await this.#permits.acquire(line));
      if (permit === null) this.#queue.putBack(line);
      else this.#begin(line, permit);
    }
  }

  /** Whether the chunk should wait for the next probe at the server, because it can do nothing until then. */
  #isProbeFarOff(nowMs: number): boolean {
    const { chunk, route } = this.#o;
    if (!chunk.mayWait || this.#answered > 0 || this.#inFlight > 0) return false;
    const { state, retryAtMs } = route.breaker;
    return state === 'open' && retryAtMs - nowMs > LONG_UNTIL_PROBE_MS;
  }

  /** Whether nothing is in flight, and nothing can be sent before `untilMs`. */
  #restsUntil(untilMs: number): boolean {
    const { state, retryAtMs } = this.#o.route.breaker;
    const nextMs = state === 'open' ? retryAtMs : (this.#queue.nextDueMs ?? 0);
    return this.#inFlight === 0 && nextMs > untilMs;
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
    const dueMs = this.#queue.nextDueMs;
    return Math.min(MAX_SLEEP_MS, dueMs === null ? Infinity : Math.max(1, dueMs - nowMs));
  }

  #begin(line: ChunkLine, permit: Permit): void {
    // Check again: a suspect line may have requested an exclusive send while this line waited for its permit.
    const mayBegin = this.#o.gate.mayBegin(this.#suspect);
    const admission = mayBegin ? this.#o.route.breaker.admit(Date.now()) : 'wait';
    if (admission === 'wait') {
      permit.release();
      this.#queue.putBack(line);
      return;
    }
    this.#inFlight++;
    this.#queue.onSent(line, Date.now());
    this.#o.gate.enter();
    void this.#tryLine(line, permit, admission === 'probe');
  }

  /** Makes one try, releases its permit and records the outcome. Never rejects. */
  async #tryLine(line: ChunkLine, permit: Permit, probe: boolean): Promise<void> {
    const startedMs = performance.now();
    try {
      if (this.#suspect !== null) await this.#journal.noteExclusiveSend(line);
      const result = await this.#o.sender.try(line, { ...this.#tryOptions, probe, load: permit });
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
    } catch (error) {
      this.#failTry(line, error);
    } finally {
      if (this.#suspect !== null) this.#journal.flushOutcome();
      permit.release();
      this.#queue.onEnded(line);
      this.#o.gate.leave();
      this.#inFlight--;
      this.#changed.set();
    }
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
    while (this.#inFlight > 0) await this.#changed.wait(MAX_SLEEP_MS);
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
