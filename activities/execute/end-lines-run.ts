import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import type { StopCause } from '../../core/batch/status';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import { readLineFields } from '../../core/openai/member-ranges';
import type { LineErrorCode } from '../../core/openai/result-line';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ObjectReader } from '../../storage/object-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import { errorFrame } from './answer-frames';
import type { CancelReason } from './cancel-reason';
import type { Chunk } from './chunk';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';
import type { LineRun } from './line-run';

/** What a run needs. */
export interface EndLinesRunOptions {
  readonly chunk: Chunk;
  readonly ledger: ChunkLedger;
  readonly lease: ChunkLease;
  readonly writer: JournalWriter;
  readonly input: ObjectReader;
  /** Why a line ends without an answer. */
  codeOf(position: number): LineErrorCode;
}

const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;
/** How often a process that was frozen checks whether its lease is confirmed. */
const FROZEN_PAUSE_MS = 250;
/** Lines between two turns of the event loop, in which heartbeats and cancels get through. */
const LINES_PER_TURN = 256;

/**
 * Ends the open lines of a chunk with error codes. It reads their custom ids and sends nothing. Like
 * every run it exits at a stop, at the deadline, and when it loses its range.
 */
export class EndLinesRun implements LineRun {
  readonly #o: EndLinesRunOptions;
  answered = 0;
  stopCause: StopCause | null = null;
  #cancelled: CancelReason | null = null;

  readonly inFlight = 0;
  readonly waitsFor = null;
  readonly ratePerSec = null;
  readonly p95Ms = null;
  readonly nextDueMs = null;

  constructor(options: EndLinesRunOptions) {
    this.#o = options;
  }

  onCancelled(reason: CancelReason): void {
    this.#cancelled = reason;
  }

  async run(): Promise<ExitReason> {
    const { ledger, writer } = this.#o;
    for (let i = 0; i < ledger.entries; i++) {
      if (ledger.isAnswered(i)) continue;
      const exitReason = await this.#exitReason();
      if (exitReason !== null) return exitReason;
      await this.#settle(ledger.line(i));
      if (this.answered % LINES_PER_TURN === 0) await turn();
      if (writer.unwrittenBytes > MAX_UNWRITTEN_BYTES) await writer.flush();
    }
    return EXIT_REASON.done;
  }

  async #settle(line: ChunkLine): Promise<void> {
    const { chunk, ledger, writer, input, codeOf } = this.#o;
    const { offset, length } = line;
    const bytes = input.readNow?.(offset, length) ?? (await input.read(offset, length));
    const { customId } = readLineFields(bytes);
    const subject = { batchId: chunk.batchId, line, customId };
    const frame = errorFrame(subject, codeOf(line.position));
    writer.append(frame.header, frame.bytes);
    ledger.recordAnswer(line.position, frame.header);
    this.answered++;
  }

  /** Null if the run may go on. A process that was frozen waits until its lease is confirmed. */
  async #exitReason(): Promise<ExitReason | null> {
    for (;;) {
      const exitReason = this.#exitReasonNow();
      if (exitReason !== null || this.#o.lease.maySend()) return exitReason;
      await sleep(FROZEN_PAUSE_MS);
    }
  }

  #exitReasonNow(): ExitReason | null {
    const { lease, chunk } = this.#o;
    if (lease.lost || this.#cancelled === 'superseded') return EXIT_REASON.fenced;
    if (lease.terminal) return EXIT_REASON.rowTerminal;
    if (lease.unconfirmed) return EXIT_REASON.unconfirmed;
    if (Date.now() >= chunk.deadlineMs) return this.#stop('expired');
    if (lease.stopCause !== null) return this.#stop(lease.stopCause);
    if (this.#cancelled === 'stop') return this.#stop('cancelled');
    return this.#cancelled === 'drain' ? EXIT_REASON.drain : null;
  }

  #stop(cause: StopCause): ExitReason {
    this.stopCause = cause;
    return EXIT_REASON.stopped;
  }
}
