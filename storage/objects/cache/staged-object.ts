import { KeptPages } from './kept-pages';
import type { PageTable } from './page-table';

/** Names of an object that is being written. */
export interface StagedNames {
  readonly key: string;
  /** Of its pages until they are kept; no object has it. */
  readonly name: string;
  readonly pieces: AsyncIterable<Uint8Array>;
}

/** An object that is being written, whose pages may be kept afterwards. */
export class StagedObject {
  readonly #table: PageTable;
  readonly #names: StagedNames;
  readonly #pages: KeptPages;
  #size = 0;

  constructor(table: PageTable, names: StagedNames) {
    this.#table = table;
    this.#names = names;
    this.#pages = new KeptPages(table, names.name);
  }

  /** The body to write: the pieces unchanged. */
  async *body(): AsyncGenerator<Uint8Array> {
    for await (const piece of this.#names.pieces) {
      await this.#pages.add(piece);
      this.#size += piece.length;
      yield piece;
    }
    this.#pages.end();
  }

  /** Makes the pages readable under the key; returns the size of the object. */
  async keep(): Promise<number> {
    await this.#pages.written();
    this.#table.rename(this.#names.name, this.#names.key);
    return this.#size;
  }

  async drop(): Promise<void> {
    await this.#pages.written();
    this.#table.drop(this.#names.name);
  }
}
