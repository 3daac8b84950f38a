import { type DurationProbe, latin1, viewOf } from './probe';

/** Sizes that a writer puts into the header of a stream whose length it does not know. */
const UNKNOWN_SIZE = 0xffffffff;
const CHUNK_HEADER = 8;

/** WAV and RF64: bytes of the data chunk by the byte rate (RIFF; EBU Tech 3306). */
export function* wavDuration(size: number): DurationProbe {
  let byteRate = 0;
  let longSize: number | null = null;
  for (let at = 12; at + CHUNK_HEADER <= size;) {
    const head = yield { offset: at, length: 40 };
    if (head.length < CHUNK_HEADER) return null;
    const view = viewOf(head);
    const id = latin1(head, 0, 4);
    const stated = view.getUint32(4, true);
    if (id === 'fmt ' && head.length >= 20) byteRate = view.getUint32(16, true);
    if (id === 'ds64' && head.length >= 24) {
      longSize = view.getUint32(16, true) + view.getUint32(20, true) * 2 ** 32;
    }
    if (id === 'data') {
      const rest = size - at - CHUNK_HEADER;
      const isUnknown = stated === UNKNOWN_SIZE || stated === 0;
      const bytes = Math.min(rest, isUnknown ? (longSize ?? rest) : stated);
      return byteRate > 0 ? bytes / byteRate : null;
    }
    // Chunks begin at even positions.
    at += CHUNK_HEADER + stated + (stated % 2);
  }
  return null;
}
