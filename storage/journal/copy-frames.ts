import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { Crc32 } from '../../core/journal/crc32';
import { readFrame } from '../../core/journal/frame';
import type { ObjectReader, ObjectStore } from '../object-store';
import type { SealedFrame } from './journal-store';

/** Bytes copied at once; a larger frame is copied alone. */
const BLOCK_BYTES = 1024 * 1024;
/** Reading up to this many unneeded bytes is cheaper than another read. */
const GAP_BYTES = 16 * 1024;
const MAX_OPEN_OBJECTS = 64;

/** What stands around the frames. */
export interface Surroundings {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

interface Placed {
  readonly ref: SealedFrame;
  /** Where its copy begins in the block. */
  readonly at: number;
}

/** Bytes that are written together. */
interface Block {
  readonly placed: Placed[];
  before: Uint8Array | null;
  after: Uint8Array | null;
  byteLength: number;
}

/** Copies frames from many objects, in the order given. */
export class FrameCopier {
  readonly #store: ObjectStore;
  readonly #crc32: Crc32;
  readonly #readers = new Map<string, ObjectReader>();

  constructor(store: ObjectStore, crc32: Crc32) {
    this.#store = store;
    this.#crc32 = crc32;
  }

  /**
   * The bytes before the frames, those of the frames and those after them, in blocks of about 1 MiB.
   * @throws object_store_failed if a frame has changed
   */
  async *copy(frames: Iterable<SealedFrame>, around: Surroundings): AsyncGenerator<Buffer, void> {
    for (const { placed, before, after, byteLength } of blocksOf(frames, around)) {
      const block = Buffer.allocUnsafeSlow(byteLength);
      if (before !== null) block.set(before, 0);
      for (const run of runsOf(placed)) await this.#copyRun(run, block);
      if (after !== null) block.set(after, byteLength - after.length);
      yield block;
    }
  }

  async close(): Promise<void> {
    for (const reader of this.#readers.values()) await reader.close();
    this.#readers.clear();
  }

  async #copyRun(run: readonly Placed[], block: Buffer): Promise<void> {
    const first = run[0]?.ref;
    const last = run.at(-1)?.ref;
    if (first === undefined || last === undefined) return;
    const length = last.position + last.byteLength - first.position;
    const window = await this.#read(first.objectKey, first.position, length);
    for (const { ref, at } of run) {
      const start = ref.position - first.position;
      const frame = readFrame(window, start, this.#crc32);
      const isSame =
        frame?.header.offset === ref.header.offset && frame.end - start === ref.byteLength;
      if (!isSame) throw changed(ref.objectKey);
      window.copy(block, at, start, frame.end);
    }
  }

  async #read(key: string, position: number, length: number): Promise<Buffer> {
    try {
      const reader = await this.#open(key);
      return await reader.read(position, length);
    } catch (error) {
      throw isNightshiftError(error, 'object_missing') ? changed(key, error) : error;
    }
  }

  async #open(key: string): Promise<ObjectReader> {
    const known = this.#readers.get(key);
    if (known !== undefined) return known;
    if (this.#readers.size >= MAX_OPEN_OBJECTS) await this.close();
    const reader = await this.#store.open(key);
    this.#readers.set(key, reader);
    return reader;
  }
}

function* blocksOf(
  frames: Iterable<SealedFrame>,
  { before, after }: Surroundings,
): Generator<Block> {
  let block: Block = { placed: [], before, after: null, byteLength: before.length };
  for (const ref of frames) {
    if (block.placed.length > 0 && block.byteLength + ref.byteLength > BLOCK_BYTES) {
      yield block;
      block = { placed: [], before: null, after: null, byteLength: 0 };
    }
    block.placed.push({ ref, at: block.byteLength });
    block.byteLength += ref.byteLength;
  }
  block.after = after;
  block.byteLength += after.length;
  yield block;
}

/** Groups frames that one read can fetch: in the same object, close together, at most two blocks. */
function runsOf(placed: readonly Placed[]): Placed[][] {
  const sorted = [...placed].sort((a, b) => compare(a.ref, b.ref));
  const runs: Placed[][] = [];
  let run: Placed[] = [];
  for (const item of sorted) {
    if (!belongsTo(run, item.ref)) runs.push((run = []));
    run.push(item);
  }
  return runs;
}

function belongsTo(run: readonly Placed[], ref: SealedFrame): boolean {
  const first = run[0]?.ref;
  const last = run.at(-1)?.ref;
  if (first === undefined || last?.objectKey !== ref.objectKey) return false;
  const gap = ref.position - (last.position + last.byteLength);
  return gap <= GAP_BYTES && ref.position + ref.byteLength - first.position <= 2 * BLOCK_BYTES;
}

function compare(a: SealedFrame, b: SealedFrame): number {
  if (a.objectKey !== b.objectKey) return a.objectKey < b.objectKey ? -1 : 1;
  return a.position - b.position;
}

function changed(key: string, cause?: unknown): NightshiftError {
  return new NightshiftError('object_store_failed', `a frame of ${key} has changed`, { cause });
}
