import { readUint32 } from '../journal/int64';
import { encodePlanEntry, PLAN_ENTRY_BYTES, type PlanEntry } from './plan-entry';

/** The first page starts small, because a file may have many models. */
const FIRST_ENTRIES = 64;
const PAGE_BITS = 12;
const PAGE_ENTRIES = 1 << PAGE_BITS;
const ENTRY_WORDS = PLAN_ENTRY_BYTES / 4;
const HASH_AT = 12;

/** The same bytes for each way to use them. */
interface Page {
  readonly bytes: Buffer;
  readonly words: Uint32Array;
}

/** Plan entries in the order of their arrival. They are kept in pages, so that a large plan grows without copying. */
export class PlanPages {
  count = 0;
  readonly #pages: Page[] = [];
  #last = pageOf(Buffer.alloc(0));

  add(entry: PlanEntry): void {
    const at = (this.count & (PAGE_ENTRIES - 1)) * PLAN_ENTRY_BYTES;
    if (at === 0 || at === this.#last.bytes.length) this.#grow();
    encodePlanEntry(this.#last.bytes, at, entry);
    this.count++;
  }

  /** The prefix hashes of all entries. */
  hashes(): Uint32Array {
    const hashes = new Uint32Array(this.count);
    for (let index = 0; index < this.count; index++) {
      hashes[index] = readUint32(this.#page(index).bytes, wordInPage(index) * 4 + HASH_AT);
    }
    return hashes;
  }

  /** All entries in this order. A piece is valid until the next one is requested. */
  *inOrder(order: Uint32Array): Generator<Buffer> {
    const { bytes, words } = newPage(Math.min(PAGE_ENTRIES, order.length));
    for (let from = 0; from < order.length; from += PAGE_ENTRIES) {
      const entries = Math.min(PAGE_ENTRIES, order.length - from);
      this.#copy(order.subarray(from, from + entries), words);
      yield bytes.subarray(0, entries * PLAN_ENTRY_BYTES);
    }
  }

  /** All entries in the order of their arrival. */
  *inInputOrder(): Generator<Buffer> {
    for (let from = 0; from < this.count; from += PAGE_ENTRIES) {
      const entries = Math.min(PAGE_ENTRIES, this.count - from);
      yield this.#page(from).bytes.subarray(0, entries * PLAN_ENTRY_BYTES);
    }
  }

  #copy(entries: Uint32Array, target: Uint32Array): void {
    for (let i = 0; i < entries.length; i++) {
      const index = entries[i] ?? 0;
      const { words } = this.#page(index);
      const from = wordInPage(index);
      const to = i * ENTRY_WORDS;
      target[to] = words[from] ?? 0;
      target[to + 1] = words[from + 1] ?? 0;
      target[to + 2] = words[from + 2] ?? 0;
      target[to + 3] = words[from + 3] ?? 0;
    }
  }

  #page(index: number): Page {
    const page = this.#pages[index >>> PAGE_BITS];
    if (page === undefined) throw new RangeError(`no plan entry ${index}`);
    return page;
  }

  /** Makes room for an entry. The first page is replaced by larger ones until it is a whole one. */
  #grow(): void {
    const { bytes } = this.#last;
    const isWhole = bytes.length === PAGE_ENTRIES * PLAN_ENTRY_BYTES;
    if (isWhole || this.count === 0) {
      this.#last = newPage(this.count === 0 ? FIRST_ENTRIES : PAGE_ENTRIES);
    } else {
      this.#last = newPage((2 * bytes.length) / PLAN_ENTRY_BYTES);
      bytes.copy(this.#last.bytes);
      this.#pages.pop();
    }
    this.#pages.push(this.#last);
  }
}

function newPage(entries: number): Page {
  const bytes = entries * PLAN_ENTRY_BYTES;
  const isSmall = entries <= FIRST_ENTRIES;
  return pageOf(isSmall ? Buffer.allocUnsafe(bytes) : Buffer.allocUnsafeSlow(bytes));
}

function pageOf(bytes: Buffer): Page {
  const { buffer, byteOffset, length } = bytes;
  return { bytes, words: new Uint32Array(buffer, byteOffset, length / 4) };
}

/** Where an entry begins in its page. */
function wordInPage(index: number): number {
  return (index & (PAGE_ENTRIES - 1)) * ENTRY_WORDS;
}
