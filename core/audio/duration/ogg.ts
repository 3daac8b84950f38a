import { flacRate } from './flac';
import { type DurationProbe, latin1, viewOf } from './probe';

const PAGE_HEADER = 27;
/** Longest page: its header, 255 lacing values, 255 segments of 255 bytes. */
const LONGEST_PAGE = PAGE_HEADER + 255 + 255 * 255;
const FIRST_BYTES = 512;
const OPUS_RATE = 48_000;
/** A page on which no packet ends has all ones. */
const NO_GRANULE = 2 ** 64;

/** What the first packet says of a stream. */
interface OggStream {
  readonly serial: number;
  /** Granules a second. */
  readonly rate: number;
  /** Granules before the beginning. */
  readonly skipped: number;
}

/** Ogg with Opus, Vorbis, FLAC or Speex: the position of the last page by the rate (RFC 3533). */
export function* oggDuration(size: number): DurationProbe {
  const stream = streamOf(yield { offset: 0, length: FIRST_BYTES });
  if (stream === null) return null;
  const length = Math.min(size, LONGEST_PAGE + PAGE_HEADER);
  const tail = yield { offset: size - length, length };
  const granule = lastGranule(tail, stream.serial);
  return granule === null ? null : (granule - stream.skipped) / stream.rate;
}

function streamOf(bytes: Uint8Array): OggStream | null {
  if (bytes.length < PAGE_HEADER || latin1(bytes, 0, 4) !== 'OggS') return null;
  const view = viewOf(bytes);
  const serial = view.getUint32(14, true);
  const packet = PAGE_HEADER + view.getUint8(26);
  if (bytes.length < packet + 40) return null;
  if (latin1(bytes, packet, packet + 8) === 'OpusHead') {
    return { serial, rate: OPUS_RATE, skipped: view.getUint16(packet + 10, true) };
  }
  const rate = rateOf(bytes, packet);
  return rate === null || rate === 0 ? null : { serial, rate, skipped: 0 };
}

function rateOf(bytes: Uint8Array, packet: number): number | null {
  const view = viewOf(bytes);
  if (latin1(bytes, packet, packet + 7) === '\x01vorbis') return view.getUint32(packet + 12, true);
  if (latin1(bytes, packet, packet + 8) === 'Speex   ') return view.getUint32(packet + 36, true);
  if (latin1(bytes, packet, packet + 5) === '\x7fFLAC') return flacRate(bytes, packet + 17);
  return null;
}

/** The position at the end of the last page of a stream on which a packet ends. */
function lastGranule(bytes: Uint8Array, serial: number): number | null {
  const view = viewOf(bytes);
  for (let at = bytes.length - PAGE_HEADER; at >= 0; at--) {
    if (bytes[at] !== 0x4f || latin1(bytes, at, at + 5) !== 'OggS\0') continue;
    if (view.getUint32(at + 14, true) !== serial) continue;
    const granule = view.getUint32(at + 6, true) + view.getUint32(at + 10, true) * 2 ** 32;
    if (granule < NO_GRANULE - 1) return granule;
  }
  return null;
}
