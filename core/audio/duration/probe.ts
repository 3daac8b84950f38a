/** Bytes of a recording that a probe wants to read; near the end it gets fewer. */
export interface ReadRange {
  readonly offset: number;
  readonly length: number;
}

/**
 * Looks for the duration that a container states. It yields what it wants to read and is given the bytes, so that one
 * code serves recordings in memory and in files. It returns seconds, or null if none are stated.
 */
export type DurationProbe = Generator<ReadRange, number | null, Uint8Array>;

/** A recording that looks like nothing in particular may name any number of places. */
const MOST_READS = 64;
const MOST_BYTES = 1024 * 1024;
/** No speech codec needs less than a kilobit a second: a longer duration is not believed. */
const LEAST_BYTES_PER_SEC = 125;

/** A probe that ends after a bounded number of reads, and whose result is possible for a recording of `size` bytes. */
export function* boundedProbe(probe: DurationProbe, size: number): DurationProbe {
  let bytes = 0;
  let step = probe.next();
  for (let reads = 0; step.done !== true; reads++) {
    const { offset, length } = step.value;
    const isPossible = offset >= 0 && offset < size && length > 0;
    bytes += length;
    if (!isPossible || reads >= MOST_READS || bytes > MOST_BYTES) return null;
    step = probe.next(yield { offset, length });
  }
  const seconds = step.value;
  if (seconds === null || !(seconds > 0)) return null;
  return seconds <= size / LEAST_BYTES_PER_SEC ? seconds : null;
}

/** A view for reading numbers at positions of some bytes. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The text of some bytes, one character each. */
export function latin1(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to));
}

/** A whole number of 8 bytes as a double, big-endian: exact up to 2^53. */
export function uint64(view: DataView, at: number): number {
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
}
