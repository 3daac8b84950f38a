import { crc32 } from 'node:zlib';
import type { StopCause } from '../../core/batch/status';
import { encodeRetryFrame, retryHeader } from '../../core/journal/frame';
import type { AcquireRequest, Permit } from '../../inference/dispatcher';
import type { Route } from '../../inference/registry';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { ExecuteChunkInput } from '../contract';
import type { ExitReason } from '../../core/chunks/exit-reason';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';
import type { ExecuteDeps } from './deps';
import { ChunkExit } from './chunk-exit';
import { LatencyWindow } from './latency';
import { LineQueue } from './line-queue';
import type { EncodedFrame } from './error-frame';
import type { LineSender, TryOptions } from './line-sender';
import { permitWait } from './permit-wait';
import type { ExclusiveGate } from './exclusive-gate';
import type { AdmissionQueue } from './admission-queue';
import { AutoResetEvent } from './auto-reset-event';

export interface ChunkRunOptions {
  readonly chunk: ExecuteChunkInput;
  /** Which attempt of the chunk this is, from 1. */
  readonly attempt: number;
  readonly deps: ExecuteDeps;
  readonly route: Route;
  readonly ledger: ChunkLedger;
  readonly writer: JournalWriter;
  readonly lease: ChunkLease;
  readonly sender: LineSender;
  /** Who waits for a first permit in this process. */
  readonly room: AdmissionQueue;
  /** Shared by all chunks of this process. */
  readonly gate: ExclusiveGate;
}

const MAX_UNWRITTEN_BYTES = 32 * 1024 * 1024;
const MIN_PERMIT_WAIT_MS = 10_000;
/** Of a chunk that waits at the server else: perhaps another worker has a permit by now. */
const MAX_PERMIT_WAIT_MS = 30_000;
/** A chunk that may wait at the server does so rather than wait here for longer for the next probe. */
const LONG_UNTIL_PROBE_MS = 2_000;
/** Longest sleep of the loop: conditions without an event of their own are looked at this often. */
const LOOK_AGAIN_MS = 250;

/**
 * Sends the lines of one chunk until it has to leave (execution §3).
 *
 * States: sending → leaving ({@link ChunkExit} has a reason: no new try begins, what runs is
 * finished or, after a stop's grace, aborted) → left.
 */
export class ChunkRun {
  readonly #o: ChunkRunOptions;
  readonly #queue: LineQueue;
  readonly #wake = new AutoResetEvent();
  readonly #latency = new LatencyWindow();
  readonly #startedMs = Date.now();
  readonly #departure: ChunkExit;
  readonly #request: AcquireRequest;
  readonly #openInModel: number;
  readonly #tryOptions: Omit<TryOptions, 'probe' | 'load'>;
  /** Set for a chunk of one suspected line. */
  readonly #suspect: symbol | null;
  #inFlight = 0;
  #hadPermit = false;
  #waitsForPermit = false;
  #answered = 0;
  /** What kept the line that was tried last from being sent. */
  #trouble: string | null = null;

  constructor(options: ChunkRunOptions) {
    this.#o = options;
    this.#suspect = options.chunk.solo === true ? Symbol('suspect') : null;
    const { chunk, route } = options;
    this.#request = {
      tenant: chunk.tenant,
      batchId: chunk.batchId,
      model: route.limiterKey,
      ...(route.gatewayLimit === undefined ? {} : { gateway: route.gatewayLimit }),
      deadlineMs: chunk.deadlineMs,
      cost: 1,
      priority: chunk.priority,
    };
    this.#openInModel = chunk.openInModel ?? options.ledger.open;
    const maxBackingOff = 2 * options.deps.config.concurrency.per_model;
    this.#queue = new LineQueue(options.ledger, maxBackingOff, options.attempt - 1);
    this.#departure = new ChunkExit({
      ...options,
      awaitsFirstAnswer: () => this.#answered === 0 && this.#inFlight > 0,
      onExit: () => this.#wake.set(),
    });
    this.#tryOptions = {
      signal: this.#departure.abort,
      stopping: () => this.#departure.stopCause !== null,
      maySend: () => options.lease.maySend() && Date.now() < chunk.deadlineMs,
      openLines: () => this.#openInModel - this.#answered,
    };
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get answered(): number {
    return this.#answered;
  }

  /** When the first line that was put back is due, Unix ms; null where none waits. */
  get nextDueMs(): number | null {
    return this.#queue.nextDueMs;
  }

  get p95Ms(): number | null {
    return this.#latency.p95Ms;
  }

  get stopCause(): StopCause | null {
    return this.#departure.stopCause;
  }

  get ratePerSec(): number | null {
    const seconds = (Date.now() - this.#startedMs) / 1000;
    return this.#answered === 0 ? null : this.#answered / Math.max(seconds, 0.001);
  }

  /** For people: what keeps lines from being sent; null while nothing does. */
  get waitsFor(): string | null {
    const { route, lease } = this.#o;
    if (route.breaker.state === 'open') return `gateway ${route.key}: it does not answer`;
    if (this.#departure.reason !== null) return null;
    if (!lease.maySend()) return 'Postgres: this process stood still';
    const limit = this.#o.deps.dispatcher.limitOf(route.limiterKey);
    return this.#trouble ?? permitWait(this.#o.chunk.model, limit, this.#waitsForPermit);
  }

  /** Runs to the end of the chunk's stay; resolves when nothing of it is in flight any more. */
  async run(): Promise<ExitReason> {
    this.#departure.watch();
    if (this.#suspect !== null) this.#o.gate.request(this.#suspect);
    try {
      await this.#sendAll();
      await this.#finishInFlight();
      this.#rememberBackOffs();
    } finally {
      if (this.#suspect !== null) this.#o.gate.release(this.#suspect);
      this.#departure.close();
    }
    return this.#departure.reason ?? 'done';
  }

  /** The activity was cancelled. */
  cancelled(reason: 'stop' | 'drain' | 'gone'): void {
    this.#departure.cancelled(reason);
  }

  async #sendAll(): Promise<void> {
    while (this.#departure.reason === null) {
      // Beside the timer: nothing may leave after the deadline, however late a timer fires.
      if (Date.now() >= this.#o.chunk.deadlineMs) return this.#departure.stop('expired');
      if (this.#o.lease.unheard) return this.#departure.exit('unheard');
      if (this.#queue.isEmpty && this.#inFlight === 0) return;
      const nowMs = Date.now();
      const line = this.#mayTry(nowMs) ? this.#nextLine(nowMs) : null;
      if (line === null) {
        if (this.#isLongAway(nowMs)) return this.#departure.exit('breaker_open');
        await this.#wake.wait(this.#idleMs(nowMs));
        continue;
      }
      // No promise where a permit is free: this line runs once for every request.
      const permit = this.#o.deps.dispatcher.tryAcquire(this.#request) ?? (await this.#permit());
      if (permit === null) {
        this.#queue.putBack(line);
        continue;
      }
      this.#hadPermit = true;
      this.#begin(line, permit);
    }
  }

  /** Nothing was sent, nothing is in flight, and nothing may be sent for long: it waits at the server. */
  #isLongAway(nowMs: number): boolean {
    const { chunk, route } = this.#o;
    if (chunk.mayWait !== true || this.#answered > 0 || this.#inFlight > 0) return false;
    const { state, retryAtMs } = route.breaker;
    return state === 'open' && retryAtMs - nowMs > LONG_UNTIL_PROBE_MS;
  }

  #nextLine(nowMs: number): ChunkLine | null {
    const isAway = this.#o.route.breaker.state === 'open';
    return isAway ? this.#queue.takeForProbe(nowMs) : this.#queue.take(nowMs);
  }

  #mayTry(nowMs: number): boolean {
    const { lease, writer, route, gate } = this.#o;
    if (!gate.mayBegin(this.#suspect)) return false;
    if (!lease.maySend() || !writer.healthy) return false;
    if (writer.unwrittenBytes > MAX_UNWRITTEN_BYTES) return false;
    return route.breaker.state === 'closed' || nowMs >= route.breaker.retryAtMs;
  }

  #idleMs(nowMs: number): number {
    const due = this.#queue.nextDueMs;
    return Math.min(LOOK_AGAIN_MS, due === null ? Infinity : Math.max(1, due - nowMs));
  }

  async #permit(): Promise<Permit | null> {
    this.#waitsForPermit = true;
    const permit = await (this.#hadPermit ? this.#await() : this.#awaitFirst());
    this.#waitsForPermit = false;
    return permit;
  }

  async #await(): Promise<Permit | null> {
    try {
      const permit = await this.#o.deps.dispatcher.acquire(this.#request, this.#departure.exiting);
      if (this.#departure.reason === null) return permit;
      permit.release();
      return null;
    } catch {
      return null;
    }
  }

  /** A process that has no permit to give for long is full: the chunk goes back to its lane. */
  async #awaitFirst(): Promise<Permit | null> {
    const { room, route, chunk } = this.#o;
    if (!room.enter(route.limiterKey, chunk.tenant)) {
      this.#departure.exit('no_permit');
      return null;
    }
    const giveUp = (): void => this.#departure.exit('no_permit');
    const timer = setTimeout(giveUp, permitWaitMs(chunk));
    try {
      return await this.#await();
    } finally {
      clearTimeout(timer);
      room.leave(route.limiterKey, chunk.tenant);
    }
  }

  #begin(line: ChunkLine, permit: Permit): void {
    // Looked at again: a suspect may have asked while this line waited for its permit.
    const alone = this.#o.gate.mayBegin(this.#suspect);
    const admission = alone ? this.#o.route.breaker.admit(Date.now()) : 'wait';
    if (admission === 'wait') {
      permit.release();
      this.#queue.putBack(line);
      return;
    }
    this.#inFlight++;
    this.#o.gate.enter();
    void this.#carry(line, permit, admission === 'probe');
  }

  /** One try from its permit to its release; never rejects. */
  async #carry(line: ChunkLine, permit: Permit, probe: boolean): Promise<void> {
    const startedMs = performance.now();
    try {
      if (this.#suspect !== null) await this.#noteAlone(line);
      const result = await this.#o.sender.try(line, { ...this.#tryOptions, probe, load: permit });
      this.#trouble = null;
      if (this.#suspect !== null && result.kind !== 'answered') this.#remember(line);
      if (result.kind === 'retry') {
        line.notBeforeMs = result.atMs;
        this.#queue.putBack(line);
      } else if (result.kind === 'answered') {
        this.#latency.add(performance.now() - startedMs);
        this.keep(line, result.frame);
      }
    } catch (error) {
      this.#failTry(line, error);
    } finally {
      permit.release();
      this.#o.gate.leave();
      this.#inFlight--;
      this.#wake.set();
    }
  }

  /** Journals an answer and counts it. */
  keep(line: ChunkLine, frame: EncodedFrame): void {
    const { ledger, writer } = this.#o;
    writer.append(frame.header, frame.bytes);
    ledger.recordAnswer(line.position, frame.header);
    this.#answered++;
    this.#departure.answered();
  }

  /** Nothing was decided about the line (its input could not be read, say): it is tried again. */
  #failTry(line: ChunkLine, error: unknown): void {
    if (this.#suspect !== null) this.#remember(line);
    if (this.#departure.abort.aborted) return;
    if (this.#trouble === null) {
      // Said once, not for every line each second, until one can be tried again.
      this.#o.deps.logger.warn({ err: error, position: line.position }, 'lines cannot be tried');
    }
    this.#trouble = `trying a line: ${error instanceof Error ? error.message : String(error)}`;
    line.notBeforeMs = Date.now() + 1_000;
    this.#queue.putBack(line);
  }

  async #finishInFlight(): Promise<void> {
    while (this.#inFlight > 0) await this.#wake.wait(LOOK_AGAIN_MS);
  }

  /**
   * Lines that wait for another try keep their numbers and their time, whoever goes on. Refusals too:
   * a line that its server always refuses would otherwise get its 20 anew with each chunk.
   */
  #rememberBackOffs(): void {
    for (const line of this.#queue.backingOff)
      if (line.tries + line.refusals > 0) this.#remember(line);
  }

  /** On disk before the line leaves: only so is its death known to be its own. */
  async #noteAlone(line: ChunkLine): Promise<void> {
    this.#remember(line, true);
    await this.#o.writer.flush();
  }

  #remember({ offset, tries, refusals, notBeforeMs }: ChunkLine, alone = false): void {
    const retry = { offset, tries, refusals, notBeforeMs, alone };
    this.#o.writer.append(retryHeader(retry), encodeRetryFrame(retry, crc32));
  }
}

function permitWaitMs({ mayWait, p95Ms }: ExecuteChunkInput): number {
  const waitMs = Math.max(MIN_PERMIT_WAIT_MS, p95Ms ?? 0);
  return mayWait === true ? Math.min(waitMs, MAX_PERMIT_WAIT_MS) : waitMs;
}
