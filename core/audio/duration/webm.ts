import { type DurationProbe, viewOf } from './probe';

const SEARCHED_BYTES = 64 * 1024;
const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const TIMESTAMP_SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const EBML = 0x1a45dfa3;
const DEFAULT_SCALE_NS = 1_000_000;
const NS_PER_SEC = 1e9;

/** An element of EBML. */
interface Element {
  readonly id: number;
  readonly content: number;
  /** Infinity if it is not known. */
  readonly length: number;
}

/** WebM: the duration of the segment, if it is near the beginning (RFC 9559). Live recordings have none. */
export function* webmDuration(): DurationProbe {
  const bytes = yield { offset: 0, length: SEARCHED_BYTES };
  const header = elementAt(bytes, 0);
  if (header === null || header.id !== EBML) return null;
  const segment = find(bytes, header.content + header.length, bytes.length, SEGMENT);
  if (segment === null) return null;
  const info = find(bytes, segment.content, endOf(segment, bytes), INFO);
  if (info === null) return null;
  const duration = find(bytes, info.content, endOf(info, bytes), DURATION);
  const scale = find(bytes, info.content, endOf(info, bytes), TIMESTAMP_SCALE);
  const ticks = duration === null ? null : floatOf(bytes, duration);
  const scaleNs = scale === null ? DEFAULT_SCALE_NS : uintOf(bytes, scale);
  return ticks === null || scaleNs === null ? null : (ticks * scaleNs) / NS_PER_SEC;
}

function endOf({ content, length }: Element, bytes: Uint8Array): number {
  return Math.min(bytes.length, content + length);
}

function find(bytes: Uint8Array, from: number, end: number, id: number): Element | null {
  for (let at = from; at < end;) {
    const element = elementAt(bytes, at);
    if (element === null || element.id === id) return element;
    at = element.content + element.length;
  }
  return null;
}

/** Null at the end of the bytes. Its content begins behind its header, so a search always goes on. */
function elementAt(bytes: Uint8Array, at: number): Element | null {
  const id = vint(bytes, at, true);
  if (id === null) return null;
  const length = vint(bytes, at + id.bytes, false);
  if (length === null) return null;
  return { id: id.value, content: at + id.bytes + length.bytes, length: length.value };
}

/** A number of variable length: of an id, the marker is a part; a length of all ones is not known. */
function vint(
  bytes: Uint8Array,
  at: number,
  isId: boolean,
): { readonly value: number; readonly bytes: number } | null {
  const first = bytes[at] ?? 0;
  const count = Math.clz32(first) - 23;
  if (first === 0 || count > (isId ? 4 : 8) || at + count > bytes.length) return null;
  let value = isId ? first : first & (0xff >> count);
  let isUnknown = value === 0xff >> count;
  for (let i = 1; i < count; i++) {
    const byte = bytes[at + i] ?? 0;
    isUnknown &&= byte === 0xff;
    value = value * 256 + byte;
  }
  return { value: !isId && isUnknown ? Infinity : value, bytes: count };
}

function floatOf(bytes: Uint8Array, { content, length }: Element): number | null {
  if (content + length > bytes.length) return null;
  if (length === 4) return viewOf(bytes).getFloat32(content);
  return length === 8 ? viewOf(bytes).getFloat64(content) : null;
}

function uintOf(bytes: Uint8Array, { content, length }: Element): number | null {
  if (length > 8 || content + length > bytes.length) return null;
  return bytes.subarray(content, content + length).reduce((value, byte) => value * 256 + byte, 0);
}
