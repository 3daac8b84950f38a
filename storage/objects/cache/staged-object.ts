import type { PageTable } from './page-table';
import { inPages, nameOf } from './pages';

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
  readonly #writes: Promise<void>[] = [];
  #size = 0;

  constructor(table: PageTable, names: StagedNames) {
    this.#table = table;
    this.#names = names;
  }

  /** The body to write: the pieces unchanged. */
  async *body(): AsyncGenerator<Uint8Array> {
    for await (const { piece, pages } of inPages(this.#names.pieces)) {
      for (const page of pages) {
        this.#writes.push(this.#table.write(nameOf(this.#names.name, this.#writes.length), page));
      }
      this.#size += piece?.length ?? 0;
      if (piece !== null) yield piece;
    }
  }

  /** Makes the pages readable under the key; returns the size of the object. */
  async keep(): Promise<number> {
    await Promise.all(this.#writes);
    const { name, key } = this.#names;
    for (let page = 0; page < this.#writes.length; page++) {
      this.#table.rename(nameOf(name, page), nameOf(key, page));
    }
    return this.#size;
  }

  async drop(): Promise<void> {
    await Promise.all(this.#writes);
    for (let page = 0; page < this.#writes.length; page++) {
      this.#table.drop(nameOf(this.#names.name, page));
    }
  }
}
