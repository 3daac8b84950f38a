import { growTo, type MergeProgram } from './merge-program';

/** What runs of frames have counted. */
export interface RunTotals {
  readonly lines: number;
  /** The two parts of the checksum of the lines, as signed integers. */
  readonly checksum: readonly [number, number];
  /** Sums of tokens: input, cached, output, reasoning, total. */
  readonly tokens: readonly number[];
}

/** Offset, start, end, end of the whole frames, and place in the heap. */
const SOURCE_BYTES = 8 + 4 + 4 + 4 + 4;
/** Behind the totals of the program. */
const TABLE_START = 2048;
/** Windows and blocks begin at a multiple of this. */
const ALIGNMENT = 65_536;
const TOKEN_COUNTS = 5;
/** A tag that no frame has: frames of all models are usual. */
export const ANY_TAG = 0x10000;

/** The table of a merge's sources: of each, its next frame; see core/assembly/frame-run.ts. Addresses are of {@link buffer}. */
export class MergeMemory {
  readonly buffer: ArrayBuffer;
  readonly offsets: Float64Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly wholeEnds: Uint32Array;
  readonly heap: Uint32Array;
  readonly #program: MergeProgram | null;
  #free: number;

  private constructor(program: MergeProgram | null, buffer: ArrayBuffer, sources: number) {
    this.#program = program;
    this.buffer = buffer;
    let at = TABLE_START;
    this.offsets = new Float64Array(buffer, at, sources);
    at += 8 * sources;
    const words = () => new Uint32Array(buffer, (at += 4 * sources) - 4 * sources, sources);
    [this.starts, this.ends, this.wholeEnds, this.heap] = [words(), words(), words(), words()];
    this.#free = aligned(at);
  }

  /** A table only: frames are taken one by one. */
  static plain(sources: number): MergeMemory {
    const buffer = new ArrayBuffer(TABLE_START + sources * SOURCE_BYTES);
    return new MergeMemory(null, buffer, sources);
  }

  /** The same with `bytes` of memory that this program reaches; a table only if there is no room for them. */
  static withProgram(program: MergeProgram, sources: number, bytes: number): MergeMemory {
    const tableEnd = TABLE_START + sources * SOURCE_BYTES;
    if (!growTo(program, aligned(tableEnd) + bytes)) return MergeMemory.plain(sources);
    const { buffer } = program.memory;
    const totals = program.totalsStart();
    // An earlier merge may have used it.
    new Uint8Array(buffer, totals, tableEnd - totals).fill(0);
    program.useTable(TABLE_START, sources);
    return new MergeMemory(program, buffer, sources);
  }

  /** The next `bytes` of the memory; null if there are no more. */
  take(bytes: number): Buffer | null {
    const start = this.#free;
    if (start + bytes > this.buffer.byteLength) return null;
    this.#free += bytes;
    return Buffer.from(this.buffer, start, bytes);
  }

  /**
   * Copies usual lines of frames before `limit` into `into` and moves the sources on; returns how many bytes. None if
   * there is no program or `into` is not of this memory. `count` sources are in the heap.
   */
  copyRun(limit: number, count: number, tag: number, into: Buffer): number {
    if (this.#program === null || into.buffer !== this.buffer) return 0;
    const { byteOffset, length } = into;
    const end = this.#program.copyRun(limit, count, tag, byteOffset, byteOffset + length);
    return (end >>> 0) - byteOffset;
  }

  /** Over all runs. */
  totals(): RunTotals {
    if (this.#program === null) return NO_TOTALS;
    const start = this.#program.totalsStart();
    const words = new Int32Array(this.buffer, start, 3);
    const [lines = 0, first = 0, second = 0] = words;
    const sums = new BigUint64Array(this.buffer, start + 16, TOKEN_COUNTS);
    return { lines: lines >>> 0, checksum: [first, second], tokens: Array.from(sums, Number) };
  }
}

function aligned(at: number): number {
  return Math.ceil(at / ALIGNMENT) * ALIGNMENT;
}

const NO_TOTALS: RunTotals = { lines: 0, checksum: [0, 0], tokens: [0, 0, 0, 0, 0] };
