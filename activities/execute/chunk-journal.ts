import { crc32 } from 'node:zlib';
import { encodeRetryFrame, retryHeader } from '../../core/journal/frame';
import type { JournalWriter } from '../../storage/journal/journal-store';
import type { EncodedFrame } from './answer-frames';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';

/** How many workers must have died while only this line was in flight, before it ends as `internal_error`. */
const PROVING_CRASHES = 3;
const MAX_UNWRITTEN_BYTES = 32 * 1024 * 1024;

/** What one run of a chunk puts into the journal and the ledger: answers, and notes on lines without one. */
export class ChunkJournal {
  readonly #writer: JournalWriter;
  readonly #ledger: ChunkLedger;

  constructor({
    writer,
    ledger,
  }: {
    readonly writer: JournalWriter;
    readonly ledger: ChunkLedger;
  }) {
    this.#writer = writer;
    this.#ledger = ledger;
  }

  /** Whether it takes the answer of another request: false while writes fail, or are far behind. */
  get hasRoom(): boolean {
    return this.#writer.healthy && this.#writer.unwrittenBytes <= MAX_UNWRITTEN_BYTES;
  }

  /**
   * Whether the journal proves that the chunk's only line kills its workers: the frames of three writers must
   * end with the note that exactly this line was about to be sent, with nothing else in flight. The
   * workflow's suspicion alone proves nothing. Workers are also killed from outside, an attempt may die
   * before it sends the line, and the line may only have been in flight beside the culprit. Evidence in
   * the journal also survives a reset workflow (docs/design/execution.md#poison-lines).
   */
  get provesPoison(): boolean {
    return this.#ledger.crashesAlone(0) >= PROVING_CRASHES;
  }

  recordAnswer(line: ChunkLine, frame: EncodedFrame): void {
    this.#writer.append(frame.header, frame.bytes);
    this.#ledger.recordAnswer(line.position, frame.header);
  }

  /** Keeps the line's tries, refusals and pause for later attempts. */
  noteBackoff(line: ChunkLine): void {
    this.#note(line, false);
  }

  /**
   * Makes it durable that the line is about to be sent exclusively. If a writer's frames end with this note,
   * it died while only this line was in flight (docs/design/execution.md#poison-lines).
   */
  async noteExclusiveSend(line: ChunkLine): Promise<void> {
    this.#note(line, true);
    await this.#writer.flush();
  }

  /**
   * Writes the outcome of an exclusive send at once. Until it is written, a kill for any other reason counts
   * as evidence against the line.
   */
  flushOutcome(): void {
    // Rejects only if the writer is closed without having written; its close reports that.
    this.#writer.flush().catch(() => undefined);
  }

  #note({ offset, tries, refusals, notBeforeMs }: ChunkLine, alone: boolean): void {
    const retry = { offset, tries, refusals, notBeforeMs, alone };
    this.#writer.append(retryHeader(retry), encodeRetryFrame(retry, crc32));
  }
}
