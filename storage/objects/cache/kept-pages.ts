import type { PageTable } from './page-table';
import { PageCutter, pagesFor, type CutPages } from './pages';
import { roomOnDisk } from './room-on-disk';

/** Keeps the pages of an object that passes in pieces. */
export class KeptPages {
  readonly #table: PageTable;
  readonly #key: string;
  readonly #cutter: PageCutter;
  readonly #writes: Promise<void>[] = [];
  #pages = 0;

  constructor(table: PageTable, key: string) {
    this.#table = table;
    this.#key = key;
    this.#cutter = new PageCutter(table.runs);
  }

  /** Resolves when the disk can take more. The piece is copied at once. */
  async add(piece: Uint8Array): Promise<void> {
    const cut = this.#cutter.add(piece);
    this.#keep(cut);
    if (cut.runs.length > 0) await roomOnDisk(this.#writes);
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
      this.#writes.push(written.then(() => this.#table.runs.giveBack(run)));
      this.#pages += pagesFor(run.length);
    }
  }
}
