import type { EncodedFrame } from '../execute/answer-frames';
import type { ChunkLine } from '../execute/chunk-ledger';
import type { JournalStore, JournalWriter } from '../../storage/journal/journal-store';
import type { JobInput } from './contract';
import type { Block, PartLedger } from './part-ledger';

/** Unwritten answers of a part beyond which it waits for the store. A process collects up to 8 parts at once. */
const MAX_UNWRITTEN_BYTES = 4 * 1024 * 1024;

/**
 * Writes the answers of a part: one writer and one seal for each block, because no segment or seal may span
 * more positions than a chunk.
 */
export class PartJournal {
  readonly #journal: JournalStore;
  readonly #scope: { readonly batchId: string; readonly safeModel: string };
  readonly #ledger: PartLedger;
  readonly #writers = new Map<Block, JournalWriter>();

  constructor(journal: JournalStore, { batchId, safe }: JobInput, ledger: PartLedger) {
    this.#journal = journal;
    this.#scope = { batchId, safeModel: safe };
    this.#ledger = ledger;
  }

  /** Journals the answer of a line. Waits while too many are not written yet. */
  async record(line: ChunkLine, frame: EncodedFrame): Promise<void> {
    const block = this.#ledger.block(line.position);
    this.#writer(block).append(frame.header, frame.bytes);
    block.ledger.recordAnswer(line.position, frame.header);
    await this.#makeRoom();
  }

  /** Journals an answer that ends the line only if nothing else does. The first one of a line counts. */
  async keep(line: ChunkLine, frame: EncodedFrame): Promise<void> {
    if (this.#ledger.keptStatus(line.position) !== null) return;
    this.#writer(this.#ledger.block(line.position)).append(frame.header, frame.bytes);
    this.#ledger.noteKept(line.position, frame.header.status);
    await this.#makeRoom();
  }

  async flush(): Promise<void> {
    await Promise.all([...this.#writers.values()].map((writer) => writer.flush()));
  }

  /**
   * Seals what is answered from the beginning of each block, also answers of attempts that died before they
   * sealed. May be repeated. @throws object_store_failed
   */
  async seal(): Promise<void> {
    for (const block of this.#ledger.blocks) {
      const { from, ledger } = block;
      const range = { from, to: ledger.next };
      if (range.to <= from) continue;
      const frames = this.#writers.get(block)?.frames ?? [];
      await this.#journal.writeSeal(this.#scope, range, ledger.framesToSeal(frames));
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#writers.values()].map((writer) => writer.close()));
  }

  async #makeRoom(): Promise<void> {
    if (this.#unwrittenBytes > MAX_UNWRITTEN_BYTES) await this.flush();
  }

  get #unwrittenBytes(): number {
    return [...this.#writers.values()].reduce((sum, writer) => sum + writer.unwrittenBytes, 0);
  }

  #writer(block: Block): JournalWriter {
    const known = this.#writers.get(block);
    if (known !== undefined) return known;
    const writer = this.#journal.openWriter(this.#scope, { from: block.from, to: block.to });
    this.#writers.set(block, writer);
    return writer;
  }
}
