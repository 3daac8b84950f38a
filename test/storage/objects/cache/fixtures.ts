import { Readable } from 'node:stream';
import type { Range } from '../../../../core/range';
import type { PageDisk } from '../../../../storage/objects/cache/page-file';
import { PAGE_BYTES } from '../../../../storage/objects/cache/pages';
import { createMemoryStore, type MemoryStore } from '../../../support/memory-store';

/** A store in memory that counts its requests. */
export interface CountedStore extends MemoryStore {
  /** Ranges that were read or streamed, in order. */
  readonly reads: { readonly key: string; readonly range: Range | undefined }[];
  heads: number;
  /** Called before each read; may throw or wait. */
  beforeRead: () => Promise<void>;
}

export function countedStore(): CountedStore {
  const memory = createMemoryStore();
  const store: CountedStore = {
    ...memory,
    reads: [],
    heads: 0,
    beforeRead: () => Promise.resolve(),
    head: (key) => {
      store.heads++;
      return memory.head(key);
    },
    read: async (key, range) => {
      store.reads.push({ key, range });
      await store.beforeRead();
      return memory.read(key, range);
    },
    stream: (key, range) => {
      store.reads.push({ key, range });
      return Readable.from(
        (async function* () {
          await store.beforeRead();
          yield* memory.stream(key, range) as AsyncIterable<Buffer>;
        })(),
      );
    },
  };
  store.scan = async function* (key, options) {
    store.reads.push({ key, range: options?.range });
    await store.beforeRead();
    yield* memory.scan(key, options);
  };
  return store;
}

/** A disk in memory. */
export class FakeDisk implements PageDisk {
  readonly slots: number;
  readonly pages = new Map<number, Buffer>();
  /** Calls that succeeded. */
  writes = 0;
  /** Slots from this number on cannot be written, as on a full disk. */
  fullFrom = Number.POSITIVE_INFINITY;
  /** Tells for each call whether it fails. */
  fails: () => boolean = () => false;

  constructor(slots: number) {
    this.slots = slots;
  }

  read(slot: number, at: number, into: Buffer, onRead: (error: unknown) => void): void {
    this.#read(slot, at, into).then(() => onRead(null), onRead);
  }

  async #read(slot: number, at: number, into: Buffer): Promise<void> {
    await turn();
    if (this.fails()) throw new Error('EIO');
    for (let done = 0; done < into.length;) {
      const start = at + done;
      const page = this.pages.get(slot + Math.floor(start / PAGE_BYTES));
      const copied = page?.copy(into, done, start % PAGE_BYTES) ?? 0;
      if (copied === 0) throw new Error('short read');
      done += copied;
    }
  }

  async write(slot: number, bytes: Buffer): Promise<void> {
    await turn();
    if (this.fails()) throw new Error('EIO');
    for (let done = 0; done < bytes.length; done += PAGE_BYTES, slot++) {
      if (slot >= this.slots) throw new Error(`slot ${slot} of ${this.slots}`);
      if (slot >= this.fullFrom) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
      const page = bytes.subarray(done, done + PAGE_BYTES);
      // As in a file, a shorter page leaves the end of the page before it in the slot.
      const rest = this.pages.get(slot)?.subarray(page.length) ?? Buffer.alloc(0);
      this.pages.set(slot, Buffer.concat([page, rest]));
    }
    this.writes++;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Bytes that differ from place to place, so that a wrong piece is noticed. */
export function patternBytes(length: number, seed: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state & 0xff;
  }
  return bytes;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
