import { type DurationProbe, latin1, viewOf } from './probe';

const TAG_HEADER = 10;
/** Between a tag and the first frame there may be padding. */
const SEARCHED_BYTES = 4_096;
const RATES = [44_100, 48_000, 32_000];
/** Samples of a frame of layer III. */
const SAMPLES = { mpeg1: 1_152, other: 576 };
/** Where a VBRI header is, behind the header of its frame. */
const VBRI = 36;

/**
 * MP3 whose first frame has a Xing, Info or VBRI header: frames times samples by the rate. Without one the duration is
 * not stated.
 */
export function* mp3Duration(): DurationProbe {
  const tag = yield { offset: 0, length: TAG_HEADER };
  const offset = tagLength(tag);
  const bytes = yield { offset, length: SEARCHED_BYTES };
  const view = viewOf(bytes);
  for (let at = 0; at + 160 <= bytes.length; at++) {
    if (!isFrame(bytes, at)) continue;
    const frame = frameAt(bytes, at);
    const frames = framesOf(bytes, view, at + 4 + frame.sideBytes, at + VBRI);
    return frames === null ? null : (frames * frame.samples) / frame.rate;
  }
  return null;
}

/** The length of an ID3v2 tag in front of the audio; 0 without one. */
function tagLength(bytes: Uint8Array): number {
  if (bytes.length < TAG_HEADER || latin1(bytes, 0, 3) !== 'ID3') return 0;
  const [a = 0, b = 0, c = 0, d = 0] = bytes.subarray(6, 10);
  const hasFooter = ((bytes[5] ?? 0) & 0x10) !== 0;
  const length = ((a & 0x7f) << 21) | ((b & 0x7f) << 14) | ((c & 0x7f) << 7) | (d & 0x7f);
  return TAG_HEADER + length + (hasFooter ? TAG_HEADER : 0);
}

/** Whether the header of a frame of layer III begins here. */
function isFrame(bytes: Uint8Array, at: number): boolean {
  const [sync = 0, kind = 0, rates = 0] = bytes.subarray(at, at + 3);
  if (sync !== 0xff || (kind & 0xe0) !== 0xe0) return false;
  const isReserved = (kind & 0x18) === 0x08 || (kind & 0x06) !== 0x02;
  return !isReserved && (rates & 0xf0) !== 0xf0 && (rates & 0x0c) !== 0x0c;
}

/** What the header of a frame says. */
interface Frame {
  readonly rate: number;
  readonly samples: number;
  /** Bytes between the header and a Xing header. */
  readonly sideBytes: number;
}

function frameAt(bytes: Uint8Array, at: number): Frame {
  const [, kind = 0, rates = 0, channels = 0] = bytes.subarray(at, at + 4);
  const version = (kind >> 3) & 3;
  const isMpeg1 = version === 3;
  const isMono = channels >> 6 === 3;
  const divisor = isMpeg1 ? 1 : version === 2 ? 2 : 4;
  return {
    rate: (RATES[(rates >> 2) & 3] ?? 44_100) / divisor,
    samples: isMpeg1 ? SAMPLES.mpeg1 : SAMPLES.other,
    sideBytes: isMpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17,
  };
}

function framesOf(
  bytes: Uint8Array,
  view: DataView,
  xingAt: number,
  vbriAt: number,
): number | null {
  const xing = latin1(bytes, xingAt, xingAt + 4);
  if ((xing === 'Xing' || xing === 'Info') && xingAt + 12 <= bytes.length) {
    const hasFrames = (view.getUint32(xingAt + 4) & 1) !== 0;
    return hasFrames ? view.getUint32(xingAt + 8) : null;
  }
  if (latin1(bytes, vbriAt, vbriAt + 4) !== 'VBRI' || vbriAt + 18 > bytes.length) return null;
  return view.getUint32(vbriAt + 14);
}
