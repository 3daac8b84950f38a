import { type DurationProbe, viewOf } from './probe';

/** Behind the marker `fLaC` and the header of its block. */
const STREAMINFO = 8;

/** FLAC: samples by rate, both in STREAMINFO (RFC 9639, section 8.2). */
export function* flacDuration(): DurationProbe {
  const bytes = yield { offset: STREAMINFO, length: 34 };
  return streamInfoDuration(bytes, 0);
}

/** The duration that a STREAMINFO block at a position states; null if it leaves the number of samples open. */
function streamInfoDuration(bytes: Uint8Array, at: number): number | null {
  const rate = flacRate(bytes, at);
  if (rate === null) return null;
  const view = viewOf(bytes);
  const samples = (view.getUint8(at + 13) & 0x0f) * 2 ** 32 + view.getUint32(at + 14);
  return samples === 0 ? null : samples / rate;
}

/** The sample rate that a STREAMINFO block states; null if it has none. */
export function flacRate(bytes: Uint8Array, at: number): number | null {
  if (bytes.length < at + 18) return null;
  const rate = viewOf(bytes).getUint32(at + 10) >>> 12;
  return rate === 0 ? null : rate;
}
