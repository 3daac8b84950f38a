import type { PageTable } from './page-table';
import { PageCutter, pagesFor, type CutPages } from './pages';

/** Keeps the pages of an object that passes in pieces. */
export class KeptPages {
  readonly #table: PageTable;
  readonly #key: string;
  readonly #cutter = new PageCutter();
  readonly #writes: Promise<void>[] = [];
  #pages = 0;

  constructor(table: PageTable, key: string) {
    this.#table = table;
    this.#key = key;
  }

  add(piece: Uint8Array): void {
    this.#keep(this.#cutter.add(piece));
  }

  /** To be called at the end of the object. */
  end(): void {
    this.#keep(this.#cutter.end());
  }

  /** Resolves when the disk has, or has refused, what was added. */
  async written(): Promise<void> {
    await Promise.all(this.#writes);
  }

  #keep({ runs }: CutPages): void {
    for (const run of runs) {
      const written = this.#table.write(this.#key, this.#pages, run);
      this.#writes.push(written.then(() => this.#cutter.giveBack(run)));
      this.#pages += pagesFor(run.length);
    }
  }
}
