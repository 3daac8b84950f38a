import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import type { StopCause } from '../../core/batch/status';
import { lineParts } from '../../core/openai/member-ranges';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { ObjectReader } from '../../storage/object-store';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { ExecuteChunkInput } from '../contract';
import type { ExitReason } from '../../core/chunks/exit-reason';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';
import { errorFrame } from './error-frame';

export interface UnroutedRunOptions {
  readonly chunk: ExecuteChunkInput;
  readonly ledger: ChunkLedger;
  readonly lease: ChunkLease;
  readonly writer: JournalWriter;
  readonly input: ObjectReader;
}

const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;
const FROZEN_PAUSE_MS = 250;
/** Lines between two turns of the event loop, in which heartbeats and cancels get through. */
const LINES_A_TURN = 256;

/**
 * Settles the open lines of a chunk as `model_not_found`: it reads their custom ids and sends nothing.
 * Heeds what every chunk heeds: a stop, the deadline, and the loss of its range.
 */
export class UnroutedRun {
  readonly #o: UnroutedRunOptions;
  answered = 0;
  stopCause: StopCause | null = null;
  #cancelled: ExitReason | null = null;

  readonly inFlight = 0;
  readonly waitsFor = null;
  readonly ratePerSec = null;
  readonly p95Ms = null;
  readonly nextDueMs = null;

  constructor(options: UnroutedRunOptions) {
    this.#o = options;
  }

  /** The activity was cancelled. */
  cancelled(reason: 'stop' | 'drain' | 'gone'): void {
    if (reason === 'drain') this.#cancelled = 'drain';
    else this.#cancelled = reason === 'gone' ? 'fenced' : 'stopped';
  }

  async run(): Promise<ExitReason> {
    const { ledger, writer } = this.#o;
    for (let i = 0; i < ledger.entries; i++) {
      if (ledger.isAnswered(i)) continue;
      const left = await this.#reasonToLeave();
      if (left !== null) return left;
      await this.#settle(ledger.line(i));
      if (this.answered % LINES_A_TURN === 0) await turn();
      if (writer.unwrittenBytes > MAX_UNWRITTEN_BYTES) await writer.flush();
    }
    return 'done';
  }

  async #settle(line: ChunkLine): Promise<void> {
    const { chunk, ledger, writer, input } = this.#o;
    const { offset, length } = line;
    const bytes = input.readNow?.(offset, length) ?? (await input.read(offset, length));
    const { customId } = lineParts(bytes);
    const { batchId } = chunk;
    const frame = errorFrame(line, { batchId, customId, code: 'model_not_found' });
    writer.append(frame.header, frame.bytes);
    ledger.recordAnswer(line.position, frame.header);
    this.answered++;
  }

  /** A process that stood still waits until it has heard whether the range is still its own. */
  async #reasonToLeave(): Promise<ExitReason | null> {
    for (;;) {
      const left = this.#left();
      if (left !== null || this.#o.lease.maySend()) return left;
      await sleep(FROZEN_PAUSE_MS);
    }
  }

  #left(): ExitReason | null {
    const { lease, chunk } = this.#o;
    if (lease.lost || this.#cancelled === 'fenced') return 'fenced';
    if (lease.terminal) return 'row_terminal';
    if (lease.unheard) return 'unheard';
    if (Date.now() >= chunk.deadlineMs) return this.#stop('expired');
    if (lease.stopCause !== null) return this.#stop(lease.stopCause);
    return this.#cancelled === 'stopped' ? this.#stop('cancelled') : this.#cancelled;
  }

  #stop(cause: StopCause): ExitReason {
    this.stopCause = cause;
    return 'stopped';
  }
}
