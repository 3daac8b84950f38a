import { createIdSet } from '../../core/openai/id-set';
import type { LineIndex } from '../../core/openai/line-index';
import { FileIndexBuilder, MIN_INDEXED_BYTES } from '../../core/plan/file-index';
import { FileIndexer, type FileIndexerOptions, type IndexMemory } from './file-indexer';

/** What indexes are made with. */
export interface FileIndexingOptions extends Pick<FileIndexerOptions, 'settings' | 'release'> {
  /** Null: no file is indexed. */
  readonly index: LineIndex | null;
}

/** Each takes up to 20 MB: 8 for the index, and 12 for the hashes of the `custom_id`s. */
const MAX_AT_ONCE = 4;
/** How long memory is kept for the next file, ms. */
const KEPT_MS = 60_000;

/**
 * Makes indexes of input files while they are uploaded, so that their batches begin without reading them
 * (docs/design/batch-path.md#index-of-a-file). An index only saves time: if anything is in its way, there is none.
 */
export class FileIndexing {
  readonly #options: FileIndexingOptions;
  #open = 0;
  /** New memory for each file would make V8 collect the whole heap four times while 56 MB are uploaded. */
  #spare: IndexMemory[] = [];
  #forget: NodeJS.Timeout | undefined;

  constructor(options: FileIndexingOptions) {
    this.#options = options;
  }

  /**
   * Begins an index, which the caller closes. Null if too many are being made, or the file is too small.
   * @param mostBytes what the file has at most
   */
  begin(mostBytes: number): FileIndexer | null {
    const { index, settings, release } = this.#options;
    if (index === null || mostBytes < MIN_INDEXED_BYTES || this.#open >= MAX_AT_ONCE) return null;
    this.#open++;
    const memory = this.#spare.pop() ?? { builder: new FileIndexBuilder(), ids: createIdSet() };
    const onClose = (): void => this.#keep(memory);
    return new FileIndexer({ index, settings, release, memory, onClose });
  }

  #keep(memory: IndexMemory): void {
    this.#open--;
    memory.builder.clear();
    memory.ids.clear();
    this.#spare.push(memory);
    clearTimeout(this.#forget);
    this.#forget = setTimeout(() => (this.#spare = []), KEPT_MS).unref();
  }
}
