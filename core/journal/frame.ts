import type { Usage } from '../batch/counts';
import { isSafeInt64, readInt64, writeInt64 } from './int64';
import type { Crc32 } from './crc32';

/**
 * A frame is one answer or one put-back of one line (execution §6): a header of 44 bytes, then the
 * payload. Little-endian: payload length u32, CRC-32 u32 (of all that follows), offset i64, kind u8,
 * flags u8, HTTP status u16, tries u16, model tag u16 (0: none; in a retry frame: refusals), usage
 * 5 × u32 (input, cached, output, reasoning, total). Flag 1: a count does not fit into its 32 bits, and
 * the payload has the exact ones.
 */
export const FRAME_HEADER_BYTES = 44;

/** Larger lengths are taken for damage; no answer comes near it (`limits.max_answer_bytes`). */
export const MAX_PAYLOAD_BYTES = 1024 ** 3;

/** `output` and `error` carry a result line without its newline; `retry` is no answer. */
export const FRAME_KIND = { output: 1, error: 2, retry: 3 } as const;
export type FrameKind = (typeof FRAME_KIND)[keyof typeof FRAME_KIND];

/**
 * Status of a retry frame written down before a suspected line is sent alone (execution §3 "Poison").
 * Where it is the last word on the line in its segment, the process died of it, or with it.
 */
export const SENT_ALONE = 1;

/** What a frame says of its payload (execution §6). */
export interface FrameHeader {
  /** Byte offset of the line in the input file: its identity. */
  readonly offset: number;
  readonly kind: FrameKind;
  /** HTTP status of the answer, 0 where there was none; in a retry frame 0 or {@link SENT_ALONE}. */
  readonly status: number;
  /** Tries made so far, this one included. */
  readonly tries: number;
  /** Only of a retry frame, absent for 0: 429s so far that were not counted as tries. */
  readonly refusals?: number;
  readonly usage: Usage;
  readonly payloadLength: number;
}

/** What a new frame says; its payload knows its own length. */
export interface NewFrame extends Omit<FrameHeader, 'payloadLength'> {
  /** Tells answers that name different models apart; absent or 0 where the answer names none. */
  readonly modelTag?: number;
}

/** A frame found intact in a buffer, and where its parts lie. */
export interface ReadFrame {
  readonly header: FrameHeader;
  readonly payloadStart: number;
  /** Position behind the frame. */
  readonly end: number;
}

/** A line put back while it waited for its next try: no answer, but its tries are remembered. */
export interface RetryFrame {
  readonly offset: number;
  readonly tries: number;
  /** 429s that were not counted as tries; bounded for each line, however often its chunk changes. */
  readonly refusals?: number;
  /** Unix ms before which the line is not to be sent again. */
  readonly notBeforeMs: number;
  /** The line is about to be sent, with nothing else in flight in its process. */
  readonly alone?: boolean;
}

/** The time before which a line is not to be sent again. */
const RETRY_PAYLOAD_BYTES = 8;
const MAX_U16 = 0xffff;
const MAX_U32 = 0xffffffff;
/** Readers that do not know the flag take the clamped counts. */
const USAGE_CLAMPED = 1;
const NO_TOKENS: Usage = {
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
};

/** One frame as bytes. Numbers beyond their field are held at its limit. */
export function encodeFrame(header: NewFrame, payload: Uint8Array, crc32: Crc32): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  frame.writeUInt32LE(payload.length, 0);
  writeInt64(frame, header.offset, 8);
  frame[16] = header.kind;
  frame[17] = isLarge(header.usage) ? USAGE_CLAMPED : 0;
  frame.writeUInt16LE(Math.min(header.status, MAX_U16), 18);
  frame.writeUInt16LE(Math.min(header.tries, MAX_U16), 20);
  frame.writeUInt16LE(header.modelTag ?? Math.min(header.refusals ?? 0, MAX_U16), 22);
  writeUsage(frame, header.usage);
  frame.set(payload, FRAME_HEADER_BYTES);
  frame.writeUInt32LE(crc32(frame.subarray(8)), 4);
  return frame;
}

/** A frame that remembers tries and back-off of a line that was put back; not an answer. */
export function encodeRetryFrame(retry: RetryFrame, crc32: Crc32): Buffer {
  const payload = Buffer.allocUnsafe(RETRY_PAYLOAD_BYTES);
  writeInt64(payload, retry.notBeforeMs, 0);
  return encodeFrame(retryHeader(retry), payload, crc32);
}

/** What the frame of {@link encodeRetryFrame} says of itself. */
export function retryHeader({ offset, tries, refusals = 0, alone }: RetryFrame): FrameHeader {
  const status = alone === true ? SENT_ALONE : 0;
  const payloadLength = RETRY_PAYLOAD_BYTES;
  const header = { offset, kind: FRAME_KIND.retry, status, tries, usage: NO_TOKENS, payloadLength };
  return refusals > 0 ? { ...header, refusals } : header;
}

/** The not-before time of a retry frame, in Unix ms; null where the payload is not one. */
export function readNotBeforeMs(bytes: Buffer, frame: ReadFrame): number | null {
  if (frame.header.kind !== FRAME_KIND.retry || frame.header.payloadLength !== RETRY_PAYLOAD_BYTES)
    return null;
  return isSafeInt64(bytes, frame.payloadStart) ? readInt64(bytes, frame.payloadStart) : null;
}

/** The whole frame at `position`, or null where its length or CRC is bad or bytes are missing. */
export function readFrame(bytes: Buffer, position: number, crc32: Crc32): ReadFrame | null {
  const end = checkedEnd(bytes, position, crc32);
  const header = end === null ? null : readHeader(bytes, position);
  if (end === null || header === null) return null;
  return { header, payloadStart: position + FRAME_HEADER_BYTES, end };
}

/**
 * Where the frame at `position` ends; null where {@link readFrame} would find none. For frames whose
 * fields are read one by one: no object is made of it.
 */
export function checkedEnd(bytes: Buffer, position: number, crc32: Crc32): number | null {
  const end = frameEnd(bytes, position);
  if (end === null || end > bytes.length) return null;
  if (crc32(bytes.subarray(position + 8, end)) !== bytes.readUInt32LE(position + 4)) return null;
  const isSound = isSafeInt64(bytes, position + 8) && asKind(bytes[position + 16]) !== null;
  return isSound ? end : null;
}

/**
 * Where the frame at `position` ends by its length field, which may lie beyond `bytes`; null where
 * not even the header is there or the length is impossible. Proves nothing about the content.
 */
export function frameEnd(bytes: Buffer, position: number): number | null {
  if (position + FRAME_HEADER_BYTES > bytes.length) return null;
  const payloadLength = bytes.readUInt32LE(position);
  if (payloadLength > MAX_PAYLOAD_BYTES) return null;
  return position + FRAME_HEADER_BYTES + payloadLength;
}

/** Offset field of the frame at `position`; the frame was checked before. */
export function frameOffset(bytes: Buffer, position: number): number {
  return readInt64(bytes, position + 8);
}

/** Kind field of the frame at `position`; the frame was checked before. */
export function frameKind(bytes: Buffer, position: number): FrameKind {
  return bytes[position + 16] as FrameKind;
}

/** Model tag of the frame at `position`; the frame was checked before. */
export function frameModelTag(bytes: Buffer, position: number): number {
  return bytes.readUInt16LE(position + 22);
}

/** Usage fields of the frame at `position`; the frame was checked before. */
export function frameUsage(bytes: Buffer, position: number): Usage {
  return {
    inputTokens: bytes.readUInt32LE(position + 24),
    cachedTokens: bytes.readUInt32LE(position + 28),
    outputTokens: bytes.readUInt32LE(position + 32),
    reasoningTokens: bytes.readUInt32LE(position + 36),
    totalTokens: bytes.readUInt32LE(position + 40),
  };
}

/** Whether the frame at `position` has counts beyond its usage fields; the frame was checked before. */
export function isUsageClamped(bytes: Buffer, position: number): boolean {
  return ((bytes[position + 17] ?? 0) & USAGE_CLAMPED) !== 0;
}

function readHeader(bytes: Buffer, position: number): FrameHeader | null {
  const kind = asKind(bytes[position + 16]);
  if (kind === null || !isSafeInt64(bytes, position + 8)) return null;
  const refusals = kind === FRAME_KIND.retry ? bytes.readUInt16LE(position + 22) : 0;
  return {
    offset: frameOffset(bytes, position),
    kind,
    ...(refusals > 0 ? { refusals } : {}),
    status: bytes.readUInt16LE(position + 18),
    tries: bytes.readUInt16LE(position + 20),
    usage: frameUsage(bytes, position),
    payloadLength: bytes.readUInt32LE(position),
  };
}

function asKind(byte: number | undefined): FrameKind | null {
  switch (byte) {
    case FRAME_KIND.output:
    case FRAME_KIND.error:
    case FRAME_KIND.retry:
      return byte;
    default:
      return null;
  }
}

function isLarge(usage: Usage): boolean {
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens, totalTokens } = usage;
  const most = Math.max(inputTokens, cachedTokens, outputTokens, reasoningTokens, totalTokens);
  return most > MAX_U32;
}

function writeUsage(frame: Buffer, usage: Usage): void {
  frame.writeUInt32LE(clampU32(usage.inputTokens), 24);
  frame.writeUInt32LE(clampU32(usage.cachedTokens), 28);
  frame.writeUInt32LE(clampU32(usage.outputTokens), 32);
  frame.writeUInt32LE(clampU32(usage.reasoningTokens), 36);
  frame.writeUInt32LE(clampU32(usage.totalTokens), 40);
}

/** Token counts come from model servers: whatever is no whole number in range must not throw here. */
function clampU32(value: number): number {
  return value > 0 ? Math.min(Math.trunc(value), MAX_U32) : 0;
}
