import { ApplicationFailure, Context } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';
import { planKey } from '../../core/names/object-names';
import { PLAN_ENTRY_BYTES } from '../../core/plan/plan-entry';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ObjectReader } from '../../storage/object-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { Deferral } from './chunk-admission';
import { noPermit, checkAdmission, waitKey } from './chunk-admission';
import { ChunkLedger } from './chunk-ledger';
import type { ChunkRunOptions } from './chunk-run';
import { ChunkRun } from './chunk-run';
import type { AttemptNote } from './worker-crashes';
import { crashesBefore } from './worker-crashes';
import type { ExecuteDeps } from './deps';
import type { LineSenderOptions } from './line-sender';
import { LineSender } from './line-sender';
import { ReadBlocks } from './read-blocks';
import { ExclusiveGate } from './exclusive-gate';
import { UnroutedRun } from './unrouted-run';
import { patiently } from './patiently';
import { AdmissionQueue } from './admission-queue';
import { asFailure } from '../runtime/failure';
import type { ExecuteChunkInput, ExecuteChunkResult } from '../contract';
import type { ExitReason } from '../../core/chunks/exit-reason';

const HEARTBEAT_MS = 1_000;
const SHORT_BOX_MS = 15_000;
/** Longest and shortest time that a chunk stays away when its lines are not due yet. */
const MAX_NOT_DUE_MS = 60_000;
const MIN_NOT_DUE_MS = 1_000;
/** Workers that a line may kill while nothing else is in flight there (execution §3 "Poison"). */
const DEATHS_ALONE = 3;

/**
 * Makes the activity that answers plan entries `[from, to)` of one model (execution §3): takes its
 * row, reads what the journal already holds, sends the rest, journals each answer, seals what is
 * whole. Idempotent: whatever is answered in the journal is never sent again.
 */
export function createExecuteChunk(
  deps: ExecuteDeps,
): (input: ExecuteChunkInput) => Promise<ExecuteChunkResult> {
  const shared = {
    room: new AdmissionQueue(),
    gate: new ExclusiveGate(),
    blocks: new ReadBlocks(),
  };
  return async (input) => {
    const { info } = Context.current();
    const deaths = crashesBefore(info.heartbeatDetails, info.attempt);
    if (deaths >= (input.maxDeaths ?? Infinity)) throw tooManyDied(deaths);
    const options = { deps, room: shared.room, taskQueue: info.taskQueue };
    const refusal = deps.drain.aborted ? null : checkAdmission(input, options);
    if (refusal !== null) return refuse(input, refusal, deps.worker);
    deps.observer.chunkStarted();
    const chunk = info.attempt > 1 ? shortBoxed(input) : input;
    const stay = new ChunkAttempt(chunk, { deps, shared, deaths });
    const heart = setInterval(() => stay.heartbeat(), HEARTBEAT_MS);
    try {
      return await stay.run();
    } catch (error) {
      throw asFailure(error);
    } finally {
      clearInterval(heart);
      deps.observer.chunkEnded();
    }
  };
}

/** What the end of a model is decided by. */
export interface EndUnroutedDeps extends ExecuteDeps {
  /** Whether a worker of the last minutes could send the model, asked anew. @throws postgres_unavailable */
  isKnownNow(model: string): Promise<boolean>;
}

/**
 * Makes the activity that ends plan entries `[from, to)` of a model that no worker can send. It asks
 * first, and changes nothing if one can. Whatever the journal holds already stays as it is.
 */
export function createEndUnrouted(
  deps: EndUnroutedDeps,
): (input: ExecuteChunkInput) => Promise<ExecuteChunkResult | null> {
  const shared = {
    room: new AdmissionQueue(),
    gate: new ExclusiveGate(),
    blocks: new ReadBlocks(),
  };
  return async (chunk) => {
    try {
      if (await deps.isKnownNow(chunk.model)) return null;
      const stay = new ChunkAttempt(chunk, { deps, shared, deaths: 0, sendsNothing: true });
      const heart = setInterval(() => stay.heartbeat(), HEARTBEAT_MS);
      return await stay.run().finally(() => clearInterval(heart));
    } catch (error) {
      throw asFailure(error);
    }
  };
}

/** A chunk that can send nothing now: it waits at the server, or its lane hears of it. */
function refuse(chunk: ExecuteChunkInput, refusal: Deferral, worker: string): ExecuteChunkResult {
  const { left, message, retryInMs } = refusal;
  if (chunk.mayWait === true && retryInMs !== null) throw waiting(left, message, retryInMs);
  const nothing = { completed: 0, failed: 0, answered: 0, ratePerSec: null, p95Ms: null };
  return { next: chunk.from, ...nothing, worker, left, stopCause: null };
}

/** Fails an attempt, not the chunk: the server tries again, which leaves no trace in the history. */
function waiting(left: ExitReason, message: string, retryInMs: number): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: left,
    nextRetryDelay: retryInMs,
    category: 'BENIGN',
  });
}

/** The lanes beside a chunk that waits have ended: they go on when it returns, which must be soon. */
function shortBoxed(chunk: ExecuteChunkInput): ExecuteChunkInput {
  if (chunk.mayWait !== true) return chunk;
  return { ...chunk, boxMs: Math.min(chunk.boxMs, Math.max(SHORT_BOX_MS, 4 * (chunk.p95Ms ?? 0))) };
}

function tooManyDied(deaths: number): ApplicationFailure {
  const message = `${deaths} workers died while they worked on this chunk`;
  return ApplicationFailure.create({ message, type: 'workers_died', nonRetryable: true });
}

/** What all chunks of a process share. */
type SharedState = Pick<ChunkRunOptions, 'room' | 'gate'> & Pick<LineSenderOptions, 'blocks'>;

interface StayOptions {
  readonly deps: ExecuteDeps;
  readonly shared: SharedState;
  readonly deaths: number;
  /** Its lines end as `model_not_found`. */
  readonly sendsNothing?: boolean;
}

/** One attempt from its row to its seal. */
class ChunkAttempt {
  readonly #chunk: ExecuteChunkInput;
  readonly #deps: ExecuteDeps;
  readonly #shared: SharedState;
  /** Kept: listeners of the signal run outside the activity's async context. */
  readonly #context = Context.current();
  readonly #signal = this.#context.cancellationSignal;
  #ledger: ChunkLedger | null = null;
  #run: ChunkRun | UnroutedRun | null = null;
  #writer: JournalWriter | null = null;
  /** What failed last and is being tried again. */
  #trouble: string | null = null;
  readonly #deaths: number;
  readonly #sendsNothing: boolean;
  /** Until the attempt ends by itself: should it never do so, it has died. */
  #holding = true;

  constructor(chunk: ExecuteChunkInput, options: StayOptions) {
    const { deps, shared, deaths, sendsNothing = false } = options;
    this.#chunk = chunk;
    this.#sendsNothing = sendsNothing;
    this.#deps = deps;
    this.#shared = shared;
    this.#deaths = deaths;
  }

  heartbeat(): void {
    const note: AttemptNote = { deaths: this.#deaths, holding: this.#holding };
    this.#context.heartbeat({
      ...note,
      next: this.#ledger?.next ?? this.#chunk.from,
      completed: this.#ledger?.completed ?? 0,
      failed: this.#ledger?.failed ?? 0,
      inFlight: this.#run?.inFlight ?? 0,
      waitsFor: this.#waitsFor(),
    });
  }

  /** For people: what keeps the chunk from sending, or from ending; null while nothing does. */
  #waitsFor(): string | null {
    if (this.#writer?.healthy === false) return 'the journal: it cannot be written';
    return this.#trouble ?? this.#run?.waitsFor ?? null;
  }

  async run(): Promise<ExecuteChunkResult> {
    const result = await this.#attempt();
    const wait = this.#chunk.mayWait === true ? this.#waitAfter(result) : null;
    if (wait === null) return result;
    // The last heartbeat goes along with the failure.
    this.#holding = false;
    this.heartbeat();
    throw wait;
  }

  /** What a chunk that may wait fails with when it has sent nothing, or null. */
  #waitAfter({ answered, next, left }: ExecuteChunkResult): ApplicationFailure | null {
    const { from, model } = this.#chunk;
    const route = this.#deps.registry.route(model);
    if (answered > 0 || next > from || route === null) return null;
    const nowMs = Date.now();
    const at = { nowMs, random: Math.random() };
    const spreadMs = this.#shared.room.retryInMs(route.limiterKey, waitKey(this.#chunk), at);
    if (left === 'no_permit') return waiting(left, noPermit(model), spreadMs);
    if (left === 'breaker_open') {
      const awayMs = clamp(route.breaker.retryAtMs - nowMs, 0, MAX_NOT_DUE_MS);
      return waiting(left, `Gateway ${route.key} does not answer.`, awayMs + spreadMs);
    }
    if (left !== 'box') return null;
    const dueMs = clamp((this.#run?.nextDueMs ?? 0) - nowMs, MIN_NOT_DUE_MS, MAX_NOT_DUE_MS);
    return waiting(left, 'No request could be sent in the time of the chunk.', dueMs);
  }

  async #attempt(): Promise<ExecuteChunkResult> {
    const { batchId, safe, from, to } = this.#chunk;
    // At once: the answer tells an attempt that comes late that it is not wanted any more.
    this.heartbeat();
    const key = { batchId, safeModel: safe, from, to };
    const lease = await this.#deps.progress.begin(key, this.#signal);
    const writer = this.#deps.journal.openWriter({ batchId, safeModel: safe }, { from, to });
    this.#writer = writer;
    try {
      const ledger = await this.#readJournal();
      this.#ledger = ledger;
      lease.follow(ledger);
      const left = ledger.allAnswered ? 'done' : await this.#settleOpen(ledger, lease, writer);
      // Not ended by a cancel: what was answered in its grace must get in.
      await writer.flush();
      if (mayHold(left)) await this.#seal(ledger, writer);
      await this.#release(lease, ledger);
      return this.#result(ledger, left);
    } catch (error) {
      await this.#release(lease, this.#ledger);
      throw error;
    } finally {
      await writer.close();
    }
  }

  async #readJournal(): Promise<ChunkLedger> {
    const { store, journal } = this.#deps;
    const { batchId, planNonce, safe, from, to } = this.#chunk;
    return this.#patiently('reading plan and journal', async () => {
      const bytes = { from: from * PLAN_ENTRY_BYTES, to: to * PLAN_ENTRY_BYTES };
      const plan = await store
        .read(planKey(batchId, planNonce, safe), bytes)
        .catch(goneAs('plan_unreadable', `plan of ${safe} is gone`));
      if (plan.length !== bytes.to - bytes.from) {
        throw new NightshiftError(
          'plan_unreadable',
          `plan of ${safe} is shorter than its map says`,
        );
      }
      const ledger = new ChunkLedger({ from, to }, plan);
      const frames = journal.scan({ batchId, safeModel: safe }, { from, to });
      for await (const ref of frames) ledger.addFrame(ref);
      return ledger;
    });
  }

  async #settleOpen(
    ledger: ChunkLedger,
    lease: ChunkLease,
    writer: JournalWriter,
  ): Promise<ExitReason> {
    if (!this.#sendsNothing) return this.#send(ledger, lease, writer);
    const input = await this.#openInput();
    try {
      const run = new UnroutedRun({ chunk: this.#chunk, ledger, lease, writer, input });
      this.#run = run;
      return await this.#untilCancelled(run);
    } finally {
      await input.close();
    }
  }

  async #untilCancelled(run: ChunkRun | UnroutedRun): Promise<ExitReason> {
    const onCancel = (): void => run.cancelled(cancelReason(this.#context));
    if (this.#signal.aborted) onCancel();
    this.#signal.addEventListener('abort', onCancel);
    try {
      return await run.run();
    } finally {
      this.#signal.removeEventListener('abort', onCancel);
    }
  }

  #openInput(): Promise<ObjectReader> {
    return this.#patiently('opening the input', () =>
      this.#deps.store
        .open(this.#chunk.inputKey)
        .catch(goneAs('input_missing', 'the input object is gone')),
    );
  }

  async #send(ledger: ChunkLedger, lease: ChunkLease, writer: JournalWriter): Promise<ExitReason> {
    const { deps, chunk } = { deps: this.#deps, chunk: this.#chunk };
    const route = deps.registry.route(chunk.model);
    // It had one when the chunk was admitted, and the configuration of a process does not change.
    if (route === null) throw new NightshiftError('internal', `no route for ${chunk.model}`);
    const headers = await this.#passThrough();
    const input = await this.#openInput();
    try {
      const { memory, observer } = deps;
      const { blocks } = this.#shared;
      const io = { input, memory, blocks, headers };
      const sender = new LineSender({ chunk, route, observer, ...io });
      const { attempt } = this.#context.info;
      const options = { chunk, attempt, deps, route, ledger, writer, lease, sender };
      const run = new ChunkRun({ ...options, ...this.#shared });
      this.#run = run;
      // Attempts that died before they sent it, or of others' lines, prove nothing against this one.
      if (chunk.poison === true && ledger.crashesAlone(0) >= DEATHS_ALONE) {
        const line = ledger.line(0);
        run.keep(line, await sender.poison(line));
        return 'done';
      }
      return await this.#untilCancelled(run);
    } finally {
      await input.close();
    }
  }

  /** Nothing is sent without them: while they cannot be had the chunk waits. */
  async #passThrough(): Promise<Readonly<Record<string, string>>> {
    const { batchId, passesHeaders } = this.#chunk;
    if (passesHeaders !== true) return {};
    return this.#patiently('reading headers', () => this.#deps.passThrough(batchId));
  }

  /** Only what is whole from the front is sealed; the rest stays in the journal for the next chunk. */
  async #seal(ledger: ChunkLedger, writer: JournalWriter): Promise<void> {
    const { batchId, safe, from } = this.#chunk;
    const { next } = ledger;
    if (next <= from) return;
    const frames = ledger.framesToSeal(writer.frames);
    await this.#patiently('sealing', () =>
      this.#deps.journal.writeSeal({ batchId, safeModel: safe }, { from, to: next }, frames),
    );
  }

  async #release(lease: ChunkLease, ledger: ChunkLedger | null): Promise<void> {
    const counts = ledger?.countsBeforeNext() ?? { completed: 0, failed: 0 };
    await lease.release({ to: ledger?.next ?? this.#chunk.from, ...counts });
  }

  #result(ledger: ChunkLedger, left: ExitReason): ExecuteChunkResult {
    // Whoever holds the range reads our answers from the journal and seals them.
    const own = mayHold(left) ? ledger : null;
    return {
      next: own?.next ?? this.#chunk.from,
      ...(own?.countsBeforeNext() ?? { completed: 0, failed: 0 }),
      answered: this.#run?.answered ?? 0,
      worker: this.#deps.worker,
      ratePerSec: this.#run?.ratePerSec ?? null,
      p95Ms: this.#run?.p95Ms ?? null,
      left: own?.allAnswered === true ? 'done' : left,
      stopCause: this.#run?.stopCause ?? null,
    };
  }

  #patiently<T>(what: string, work: () => Promise<T>): Promise<T> {
    const onFailure = (error: Error): void =>
      void (this.#trouble = failureText(`${what}: ${error.message}`));
    const options = { signal: this.#signal, logger: this.#deps.logger, what, onFailure };
    return patiently(work, options).finally(() => (this.#trouble = null));
  }
}

/** Whether a chunk that left so still held its range as far as it knew. */
function mayHold(left: ExitReason): boolean {
  return left !== 'fenced' && left !== 'unheard';
}

/** What the batch cannot go on without: `object_missing` becomes the code that ends it (execution §4). */
function goneAs(code: 'plan_unreadable' | 'input_missing', message: string) {
  return (cause: unknown): never => {
    throw isNightshiftError(cause, 'object_missing')
      ? new NightshiftError(code, message, { cause })
      : cause;
  };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** Why the activity was cancelled (temporal §1.3): the server's word, or this worker going down. */
function cancelReason(context: Context): 'stop' | 'drain' | 'gone' {
  const details = context.cancellationDetails;
  if (details?.workerShutdown === true) return 'drain';
  if (details?.notFound === true || details?.timedOut === true) return 'gone';
  return 'stop';
}
