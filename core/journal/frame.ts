import type { Usage } from '../batch/counts';
import { isSafeInt64, readInt64, readUint32, writeInt64, writeUint32 } from './int64';
import type { Crc32 } from './crc32';

/**
 * A frame is the answer to one line, or a note that the line waits for its next try
 * (docs/design/journal.md#frames): a header of 44 bytes, then the payload. Little-endian: payload length
 * u32, CRC-32 u32 (of everything after it), offset i64, kind u8, flags u8, HTTP status u16, tries u16,
 * model tag u16 (0 for none; in a retry frame: refusals), usage 5 × u32 (input, cached, output, reasoning,
 * total). Flag 1: a count does not fit into 32 bits; the payload has the exact counts.
 */
export const FRAME_HEADER_BYTES = 44;

/** A larger length means damage: `limits.max_answer_bytes` is always far smaller. */
const MAX_PAYLOAD_BYTES = 1024 ** 3;

/** `output` and `error` hold a result line without its newline; `retry` does not answer its line. */
export const FRAME_KIND = { output: 1, error: 2, retry: 3 } as const;
export type FrameKind = (typeof FRAME_KIND)[keyof typeof FRAME_KIND];

/**
 * Status of a retry frame that is made durable before a suspect line is sent exclusively
 * (docs/design/execution.md#poison-lines). If it is the last frame of the line in its segment, the
 * process died while only this line was in flight.
 */
export const SENT_ALONE = 1;

/**
 * The smallest status of a retry frame that keeps an answer: an HTTP status
 * (docs/design/journal.md#kept-answers). The payload is the result line then, and no time.
 */
const LEAST_HTTP_STATUS = 100;

/** The header of a frame. */
export interface FrameHeader {
  /** Byte offset of the line in the input file: its identity. */
  readonly offset: number;
  readonly kind: FrameKind;
  /**
   * HTTP status of the answer, 0 if there was none; in a retry frame 0, {@link SENT_ALONE}, or the status of a
   * {@link keepsAnswer kept answer}.
   */
  readonly status: number;
  /** Tries made so far, this one included. */
  readonly tries: number;
  /** In a retry frame: 429s so far that were not counted as tries; absent for 0. */
  readonly refusals?: number;
  readonly usage: Usage;
  readonly payloadLength: number;
}

/** The header of a new frame; the length follows from the payload. */
export interface NewFrame extends Omit<FrameHeader, 'payloadLength'> {
  /** Differs between answers that name different models; absent or 0 if the answer names none. */
  readonly modelTag?: number;
}

/** An intact frame in a buffer, and its positions there. */
export interface ReadFrame {
  readonly header: FrameHeader;
  readonly payloadStart: number;
  /** Position after the frame. */
  readonly end: number;
}

/** The tries of a line that waited for its next try when its chunk ended. */
export interface RetryFrame {
  readonly offset: number;
  readonly tries: number;
  /** 429s that were not counted as tries. */
  readonly refusals?: number;
  /** The line must not be sent before this time, Unix ms. */
  readonly notBeforeMs: number;
  /** The line is about to be sent exclusively: nothing else is in flight in its process. */
  readonly alone?: boolean;
}

/** The payload of a retry frame is its not-before time, i64. */
const RETRY_PAYLOAD_BYTES = 8;
const MAX_U16 = 0xffff;
const MAX_U32 = 0xffffffff;
/** Old readers ignore the flag and use the clamped counts. */
const USAGE_CLAMPED = 1;
const NO_TOKENS: Usage = {
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
};

/** The bytes of a frame. A number that exceeds its field is clamped to the largest value of the field. */
export function encodeFrame(header: NewFrame, payload: Uint8Array, crc32: Crc32): Buffer {
  return encodeFrameOf(header, [payload], crc32);
}

/** The bytes of a frame whose payload is these pieces behind each other; texts are ASCII. */
export function encodeFrameOf(
  header: NewFrame,
  pieces: readonly (Uint8Array | string)[],
  crc32: Crc32,
): Buffer {
  let length = FRAME_HEADER_BYTES;
  for (const piece of pieces) length += piece.length;
  const frame = Buffer.allocUnsafe(length);
  writeHeader(frame, header);
  let at = FRAME_HEADER_BYTES;
  for (const piece of pieces) {
    if (typeof piece === 'string') frame.write(piece, at, 'latin1');
    else frame.set(piece, at);
    at += piece.length;
  }
  writeUint32(frame, crc32(frame.subarray(8)), 4);
  return frame;
}

/** Writes everything but the checksum. */
function writeHeader(frame: Buffer, header: NewFrame): void {
  const { usage } = header;
  const flags = isLarge(usage) ? USAGE_CLAMPED : 0;
  const tag = header.modelTag ?? Math.min(header.refusals ?? 0, MAX_U16);
  writeUint32(frame, frame.length - FRAME_HEADER_BYTES, 0);
  writeInt64(frame, header.offset, 8);
  writeUint32(frame, header.kind | (flags << 8) | (Math.min(header.status, MAX_U16) << 16), 16);
  writeUint32(frame, Math.min(header.tries, MAX_U16) | (tag << 16), 20);
  writeUint32(frame, clampU32(usage.inputTokens), 24);
  writeUint32(frame, clampU32(usage.cachedTokens), 28);
  writeUint32(frame, clampU32(usage.outputTokens), 32);
  writeUint32(frame, clampU32(usage.reasoningTokens), 36);
  writeUint32(frame, clampU32(usage.totalTokens), 40);
}

/** The bytes of a retry frame. */
export function encodeRetryFrame(retry: RetryFrame, crc32: Crc32): Buffer {
  const payload = Buffer.allocUnsafe(RETRY_PAYLOAD_BYTES);
  writeInt64(payload, retry.notBeforeMs, 0);
  return encodeFrame(retryHeader(retry), payload, crc32);
}

/** The header of the frame that {@link encodeRetryFrame} makes. */
export function retryHeader({ offset, tries, refusals = 0, alone }: RetryFrame): FrameHeader {
  const status = alone === true ? SENT_ALONE : 0;
  const payloadLength = RETRY_PAYLOAD_BYTES;
  const header = { offset, kind: FRAME_KIND.retry, status, tries, usage: NO_TOKENS, payloadLength };
  return refusals > 0 ? { ...header, refusals } : header;
}

/**
 * Whether the frame keeps an answer that counts only if the line gets no other one
 * (docs/design/journal.md#kept-answers).
 */
export function keepsAnswer({ kind, status }: Pick<FrameHeader, 'kind' | 'status'>): boolean {
  return kind === FRAME_KIND.retry && status >= LEAST_HTTP_STATUS;
}

/** The not-before time of a retry frame, Unix ms; null for any other frame, and for a kept answer. */
export function readNotBeforeMs(bytes: Buffer, frame: ReadFrame): number | null {
  if (frame.header.kind !== FRAME_KIND.retry || frame.header.payloadLength !== RETRY_PAYLOAD_BYTES)
    return null;
  return isSafeInt64(bytes, frame.payloadStart) ? readInt64(bytes, frame.payloadStart) : null;
}

/** The frame at `position`; null if its length or CRC is wrong, or bytes are missing. */
export function readFrame(bytes: Buffer, position: number, crc32: Crc32): ReadFrame | null {
  const end = checkedEnd(bytes, position, crc32);
  const header = end === null ? null : readHeader(bytes, position);
  if (end === null || header === null) return null;
  return { header, payloadStart: position + FRAME_HEADER_BYTES, end };
}

/**
 * Where the frame at `position` ends; null if {@link readFrame} would return null. Allocates no object, for
 * readers that need only single fields.
 */
export function checkedEnd(bytes: Buffer, position: number, crc32: Crc32): number | null {
  const end = frameEnd(bytes, position);
  if (end === null || end > bytes.length) return null;
  if (crc32(bytes.subarray(position + 8, end)) !== readUint32(bytes, position + 4)) return null;
  const isSound = isSafeInt64(bytes, position + 8) && asKind(bytes[position + 16]) !== null;
  return isSound ? end : null;
}

/**
 * Where the frame at `position` ends by its length field, which may be beyond `bytes`; null if the header
 * is incomplete or the length impossible. Does not check the content.
 */
export function frameEnd(bytes: Buffer, position: number): number | null {
  if (position + FRAME_HEADER_BYTES > bytes.length) return null;
  const payloadLength = readUint32(bytes, position);
  if (payloadLength > MAX_PAYLOAD_BYTES) return null;
  return position + FRAME_HEADER_BYTES + payloadLength;
}

/** Offset field of the frame at `position`; the frame must have been checked. */
export function frameOffset(bytes: Buffer, position: number): number {
  return readInt64(bytes, position + 8);
}

/** Kind field of the frame at `position`; the frame must have been checked. */
export function frameKind(bytes: Buffer, position: number): FrameKind {
  return bytes[position + 16] as FrameKind;
}

/** Model tag of the frame at `position`; the frame must have been checked. */
export function frameModelTag(bytes: Buffer, position: number): number {
  return bytes.readUInt16LE(position + 22);
}

/** Usage fields of the frame at `position`; the frame must have been checked. */
export function frameUsage(bytes: Buffer, position: number): Usage {
  return {
    inputTokens: readUint32(bytes, position + 24),
    cachedTokens: readUint32(bytes, position + 28),
    outputTokens: readUint32(bytes, position + 32),
    reasoningTokens: readUint32(bytes, position + 36),
    totalTokens: readUint32(bytes, position + 40),
  };
}

/** Whether the frame at `position` has counts beyond its usage fields; the frame must have been checked. */
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
    payloadLength: readUint32(bytes, position),
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

/** Model servers report the counts, so a value that is no integer or out of range must not throw here. */
function clampU32(value: number): number {
  return value > 0 ? Math.min(Math.trunc(value), MAX_U32) : 0;
}
