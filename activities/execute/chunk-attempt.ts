import { Context } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { ExecuteChunkResult } from '../contract';
import { cancelReasonOf } from './cancel-reason';
import type { Chunk } from './chunk';
import { ChunkLedger } from './chunk-ledger';
import type { ExecuteDeps } from './deps';
import { EarlyReads, type ReadRuns } from './early-reads';
import type { LineRun } from './line-run';
import type { OpenRun, RunContext } from './open-run';
import type { Opened, OpeningOrder } from './opening-order';
import { retryStep } from './retry-step';
import type { AttemptNote } from './worker-crashes';

/** What an attempt needs. */
export interface ChunkAttemptOptions {
  readonly deps: ExecuteDeps;
  /** Earlier attempts of the chunk whose worker died. */
  readonly crashes: number;
  /** In which order chunks open; if it is absent, the attempt opens at once. */
  readonly order?: OpeningOrder;
  readonly readRuns: ReadRuns;
  /** Opens the run that settles the open lines. */
  openRun(context: RunContext): Promise<OpenRun>;
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
  /** Lets the chunks that wait for this one open. */
  #opened: Opened | null = null;
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
    const { order, deps } = this.#o;
    this.#opened = (await order?.enter(this.#chunk, this.#signal)) ?? null;
    const reads = new EarlyReads(deps.store, this.#chunk, this.#o.readRuns);
    try {
      return await this.#work(reads);
    } finally {
      this.#opened?.();
      reads.closeUnused();
    }
  }

  async #work(reads: EarlyReads): Promise<ExecuteChunkResult> {
    const { batchId, safeModel, from, to } = this.#chunk;
    const { progress, journal } = this.#o.deps;
    const beat = (): void => this.#context.heartbeat(this.heartbeatDetails);
    const lease = await progress.begin({ batchId, safeModel, from, to }, this.#signal, beat);
    const writer = journal.openWriter({ batchId, safeModel }, { from, to });
    this.#writer = writer;
    try {
      const ledger = await this.#readJournal(reads);
      this.#ledger = ledger;
      lease.trackCounts(ledger);
      const exitReason = ledger.allAnswered
        ? EXIT_REASON.done
        : await this.#settleOpen({ ledger, lease, writer, reads });
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

  #readJournal(reads: EarlyReads): Promise<ChunkLedger> {
    const { journal } = this.#o.deps;
    const { batchId, safeModel, from, to } = this.#chunk;
    return this.#retry('reading plan and journal', async () => {
      const { entries, runs } = await reads.takePlan();
      const ledger = new ChunkLedger({ from, to }, entries, runs);
      const frames = journal.scan({ batchId, safeModel }, { from, to });
      for await (const ref of frames) ledger.addFrame(ref);
      return ledger;
    });
  }

  async #settleOpen(
    parts: Pick<RunContext, 'ledger' | 'lease' | 'writer' | 'reads'>,
  ): Promise<ExitReason> {
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
      const running = run.run();
      this.#opened?.();
      return await running;
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
