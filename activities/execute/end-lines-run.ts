import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import type { StopCause } from '../../core/batch/status';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import { readLineFields } from '../../core/openai/member-ranges';
import type { LineErrorCode } from '../../core/openai/result-line';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ObjectReader } from '../../storage/object-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import { errorFrame, type EncodedFrame } from './answer-frames';
import type { CancelReason } from './cancel-reason';
import type { Chunk } from './chunk';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';
import { byPlace, type KeptAnswers } from './kept-answers';
import type { LineRun } from './line-run';

/** What a run needs. */
export interface EndLinesRunOptions {
  readonly chunk: Chunk;
  readonly ledger: ChunkLedger;
  readonly lease: ChunkLease;
  readonly writer: JournalWriter;
  readonly input: ObjectReader;
  /** Reads the answers that lines end with, if the journal keeps one. */
  readonly kept: KeptAnswers;
  /** Why a line ends without an answer. */
  codeOf(position: number): LineErrorCode;
}

const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;
/** How often a process that was frozen checks whether its lease is confirmed. */
const FROZEN_PAUSE_MS = 250;
/** Lines between two turns of the event loop, in which heartbeats and cancels get through. */
const LINES_PER_TURN = 256;

/**
 * Ends the open lines of a chunk with the answers that are kept for them, or with error codes. It reads their custom
 * ids and sends nothing. Like every run it exits at a stop, at the deadline, and when it loses its range.
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
    for (const i of this.#openLines()) {
      const exitReason = await this.#exitReason();
      if (exitReason !== null) return exitReason;
      await this.#settle(ledger.line(i));
      if (this.answered % LINES_PER_TURN === 0) await turn();
      if (writer.unwrittenBytes > MAX_UNWRITTEN_BYTES) await writer.flush();
    }
    return EXIT_REASON.done;
  }

  /** Indexes of the open lines: first those with a kept answer, in the order in which the store reads them best. */
  #openLines(): number[] {
    const { ledger } = this.#o;
    const open = Array.from({ length: ledger.entries }, (_, i) => i).filter(
      (i) => !ledger.isAnswered(i),
    );
    const places = open.flatMap((index) => {
      const place = ledger.keptAnswer(index);
      return place === null ? [] : [{ index, place }];
    });
    places.sort((a, b) => byPlace(a.place, b.place));
    const rest = open.filter((index) => ledger.keptAnswer(index) === null);
    return [...places.map(({ index }) => index), ...rest];
  }

  async #settle(line: ChunkLine): Promise<void> {
    const { ledger, writer } = this.#o;
    const frame = (await this.#keptFrame(line)) ?? (await this.#errorFrame(line));
    writer.append(frame.header, frame.bytes);
    ledger.recordAnswer(line.position, frame.header);
    this.answered++;
  }

  async #keptFrame({ position }: ChunkLine): Promise<EncodedFrame | null> {
    const { kept, ledger } = this.#o;
    const place = ledger.keptAnswer(position - ledger.from);
    return place === null ? null : kept.frame(place);
  }

  async #errorFrame(line: ChunkLine): Promise<EncodedFrame> {
    const { chunk, input, codeOf } = this.#o;
    const { offset, length } = line;
    const bytes = input.readNow?.(offset, length) ?? (await input.read(offset, length));
    const { customId } = readLineFields(bytes);
    return errorFrame({ batchId: chunk.batchId, line, customId }, codeOf(line.position));
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
