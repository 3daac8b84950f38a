import { Context } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import { runsKey } from '../../core/names/object-names';
import { decodeRuns, runsBytes } from '../../core/plan/runs';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { ExecuteChunkResult } from '../contract';
import { cancelReasonOf } from './cancel-reason';
import type { Chunk } from './chunk';
import { ChunkLedger } from './chunk-ledger';
import type { ExecuteDeps } from './deps';
import type { LineRun } from './line-run';
import type { OpenRun, RunContext } from './open-run';
import { readPlan } from './read-plan';
import { retryStep } from './retry-step';
import type { AttemptNote } from './worker-crashes';

/** What an attempt needs. */
export interface ChunkAttemptOptions {
  readonly deps: ExecuteDeps;
  /** Earlier attempts of the chunk whose worker died. */
  readonly crashes: number;
  /** Opens the run that settles the open lines. */
  openRun(context: RunContext): Promise<OpenRun>;
}

/** What the plan says of a chunk: its entries, and their runs if it has any. */
interface PlanParts {
  readonly entries: Buffer;
  readonly runs: Uint8Array | null;
}

/**
 * One attempt at a chunk, from its row to its seal. Idempotent: what the journal already answers is never
 * sent again, so any number of attempts may follow each other or overlap
 * (docs/design/execution.md#chunks-and-time-slices).
 */
export class ChunkAttempt {
  readonly #chunk: Chunk;
  readonly #o: ChunkAttemptOptions;
  /** Kept, because listeners of the signal run outside the activity's asynchronous context. */
  readonly #context = Context.current();
  readonly #signal = this.#context.cancellationSignal;
  #ledger: ChunkLedger | null = null;
  #run: LineRun | null = null;
  #writer: JournalWriter | null = null;
  /** The step that is being retried, and its last error; for operators. */
  #trouble: string | null = null;
  /** True until the attempt ends by itself. If the last heartbeat still says true, its worker died. */
  #isAtWork = true;

  constructor(chunk: Chunk, options: ChunkAttemptOptions) {
    this.#chunk = chunk;
    this.#o = options;
  }

  /** Details of a heartbeat: a note for the next attempt, and the progress for operators. */
  get heartbeatDetails(): object {
    const note: AttemptNote = { deaths: this.#o.crashes, holding: this.#isAtWork };
    return {
      ...note,
      next: this.#ledger?.next ?? this.#chunk.from,
      completed: this.#ledger?.completed ?? 0,
      failed: this.#ledger?.failed ?? 0,
      inFlight: this.#run?.inFlight ?? 0,
      waitsFor: this.#waitsFor,
    };
  }

  /** When the first line in backoff is due, Unix ms; null if none is in backoff. */
  get nextDueMs(): number | null {
    return this.#run?.nextDueMs ?? null;
  }

  /** Call it when the attempt fails in order to wait, so that its last heartbeat does not count as a crash. */
  endByItself(): void {
    this.#isAtWork = false;
  }

  async run(): Promise<ExecuteChunkResult> {
    const { batchId, safeModel, from, to } = this.#chunk;
    const { progress, journal } = this.#o.deps;
    const beat = (): void => this.#context.heartbeat(this.heartbeatDetails);
    const plan = this.#readPlan();
    // Read again if it fails, and not needed if the lease does.
    plan.catch(() => undefined);
    const lease = await progress.begin({ batchId, safeModel, from, to }, this.#signal, beat);
    const writer = journal.openWriter({ batchId, safeModel }, { from, to });
    this.#writer = writer;
    try {
      const ledger = await this.#readJournal(plan);
      this.#ledger = ledger;
      lease.trackCounts(ledger);
      const exitReason = ledger.allAnswered
        ? EXIT_REASON.done
        : await this.#settleOpen({ ledger, lease, writer });
      // This also holds after a cancel: answers that arrived within the grace must become durable.
      await writer.flush();
      if (mayHoldRange(exitReason)) await this.#seal(ledger, writer);
      await this.#release(lease, ledger);
      return this.#result(ledger, exitReason);
    } catch (error) {
      await this.#release(lease, this.#ledger);
      throw error;
    } finally {
      await writer.close();
    }
  }

  /** What the chunk waits for before it can send or end, for operators; null if it does not wait. */
  get #waitsFor(): string | null {
    if (this.#writer?.healthy === false) return 'the journal: it cannot be written';
    return this.#trouble ?? this.#run?.waitsFor ?? null;
  }

  /** It never changes, so it is read before the chunk has its row. */
  async #readPlan(): Promise<PlanParts> {
    const [entries, runs] = await Promise.all([
      readPlan(this.#o.deps.store, this.#chunk, this.#chunk),
      this.#readRuns(),
    ]);
    return { entries, runs };
  }

  #readJournal(early: Promise<PlanParts>): Promise<ChunkLedger> {
    const { journal } = this.#o.deps;
    const { batchId, safeModel, from, to } = this.#chunk;
    let plan: Promise<PlanParts> | null = early;
    return this.#retry('reading plan and journal', async () => {
      const reading = plan ?? this.#readPlan();
      plan = null;
      const { entries, runs } = await reading;
      const ledger = new ChunkLedger({ from, to }, entries, runs);
      const frames = journal.scan({ batchId, safeModel }, { from, to });
      for await (const ref of frames) ledger.addFrame(ref);
      return ledger;
    });
  }

  /**
   * Null if the plan has no runs object, or if it cannot be read: it only improves the order of sending.
   * Never rejects.
   */
  async #readRuns(): Promise<Uint8Array | null> {
    const { batchId, planNonce, safeModel, from, to } = this.#chunk;
    const key = runsKey(batchId, planNonce, safeModel);
    try {
      return decodeRuns(await this.#o.deps.store.read(key, runsBytes({ from, to })), { from, to });
    } catch {
      return null;
    }
  }

  async #settleOpen(parts: Pick<RunContext, 'ledger' | 'lease' | 'writer'>): Promise<ExitReason> {
    const { run, close } = await this.#o.openRun({
      ...parts,
      chunk: this.#chunk,
      attempt: this.#context.info.attempt,
      attemptLimitMs: this.#context.info.startToCloseTimeoutMs,
      retry: (what, work) => this.#retry(what, work),
    });
    this.#run = run;
    const onCancel = (): void => run.onCancelled(cancelReasonOf(this.#context));
    if (this.#signal.aborted) onCancel();
    this.#signal.addEventListener('abort', onCancel);
    try {
      return await run.run();
    } finally {
      this.#signal.removeEventListener('abort', onCancel);
      await close();
    }
  }

  /** Seals the answers of `[from, next)`. Later answers stay in the segment for the next chunk. */
  async #seal(ledger: ChunkLedger, writer: JournalWriter): Promise<void> {
    const { batchId, safeModel, from } = this.#chunk;
    const { next } = ledger;
    if (next <= from) return;
    const frames = ledger.framesToSeal(writer.frames);
    await this.#retry('sealing', () =>
      this.#o.deps.journal.writeSeal({ batchId, safeModel }, { from, to: next }, frames),
    );
  }

  async #release(lease: ChunkLease, ledger: ChunkLedger | null): Promise<void> {
    const counts = ledger?.countsBeforeNext() ?? { completed: 0, failed: 0 };
    await lease.release({ to: ledger?.next ?? this.#chunk.from, ...counts });
  }

  #result(ledger: ChunkLedger, exitReason: ExitReason): ExecuteChunkResult {
    // If another attempt holds the range, it reads our answers from the journal and reports them.
    const own = mayHoldRange(exitReason) ? ledger : null;
    return {
      next: own?.next ?? this.#chunk.from,
      ...(own?.countsBeforeNext() ?? { completed: 0, failed: 0 }),
      answered: this.#run?.answered ?? 0,
      worker: this.#o.deps.worker,
      ratePerSec: this.#run?.ratePerSec ?? null,
      p95Ms: this.#run?.p95Ms ?? null,
      left: own?.allAnswered === true ? EXIT_REASON.done : exitReason,
      stopCause: this.#run?.stopCause ?? null,
    };
  }

  #retry<T>(what: string, work: () => Promise<T>): Promise<T> {
    const onFailure = (error: Error): void => {
      this.#trouble = failureText(`${what}: ${error.message}`);
    };
    const { logger } = this.#o.deps;
    return retryStep(work, { signal: this.#signal, logger, what, onFailure }).finally(
      () => (this.#trouble = null),
    );
  }
}

/** Whether an attempt that exited for this reason may still hold its range. */
function mayHoldRange(exitReason: ExitReason): boolean {
  return exitReason !== EXIT_REASON.fenced && exitReason !== EXIT_REASON.unconfirmed;
}
