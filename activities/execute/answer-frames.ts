import { crc32 } from 'node:zlib';
import { NO_USAGE } from '../../core/batch/counts';
import type { FrameHeader, NewFrame } from '../../core/journal/frame';
import { encodeFrame, encodeFrameOf, FRAME_KIND } from '../../core/journal/frame';
import { lineId } from '../../core/names/ids';
import { embedAnswer } from '../../core/openai/answer';
import { modelTag } from '../../core/openai/answer-model';
import type { EmbeddedAnswer } from '../../core/openai/embedded-answer';
import type { LineErrorCode } from '../../core/openai/result-line';
import { answerLine, answerLinePieces, errorLine } from '../../core/openai/result-line';
import type { BackendAnswer } from '../../inference/backend';
import type { ChunkLine } from './chunk-ledger';

/** A frame ready for the journal: its header, and header and payload as bytes. */
export interface EncodedFrame {
  readonly header: FrameHeader;
  readonly bytes: Buffer;
}

/** Which line of which batch a frame is for. */
export interface FrameSubject {
  readonly batchId: string;
  readonly line: ChunkLine;
  readonly customId: string;
}

/** The frame with a model server's answer; `embedded` is its body as JSON, by default as it is. */
export function answerFrame(
  { batchId, line, customId }: FrameSubject,
  { status, requestId, body }: Pick<BackendAnswer, 'status' | 'requestId' | 'body'>,
  embedded: EmbeddedAnswer = embedAnswer(status, body),
): EncodedFrame {
  const id = lineId(batchId, line.offset);
  const pieces = answerLinePieces({ lineId: id, customId, status, requestId, embedded });
  const [head, json, tail] = pieces;
  const header = {
    offset: line.offset,
    kind: embedded.ok ? FRAME_KIND.output : FRAME_KIND.error,
    status,
    tries: line.tries,
    usage: embedded.usage,
    payloadLength: head.length + json.length + tail.length,
    modelTag: modelTag(embedded.model),
  };
  return { header, bytes: encodeFrameOf(header, pieces, crc32) };
}

/**
 * The frame that keeps an answer without ending the line (docs/design/journal.md#kept-answers).
 * @param answer its status is 400 or above
 */
export function keptFrame(
  { batchId, line, customId }: FrameSubject,
  { status, requestId, body }: Pick<BackendAnswer, 'status' | 'requestId' | 'body'>,
): EncodedFrame {
  const embedded = embedAnswer(status, body);
  const id = lineId(batchId, line.offset);
  const payload = answerLine({ lineId: id, customId, status, requestId, embedded });
  const { offset, tries } = line;
  return frameOf({ offset, kind: FRAME_KIND.retry, status, tries, usage: NO_USAGE }, payload);
}

/** The frame that ends a line with an answer that was kept: its result line is `payload`. */
export function endingFrame(kept: FrameHeader, payload: Uint8Array): EncodedFrame {
  const { offset, status, tries } = kept;
  return frameOf({ offset, kind: FRAME_KIND.error, status, tries, usage: NO_USAGE }, payload);
}

/** The frame that settles a line with an error code of ours, because there is no answer of a model server. */
export function errorFrame(
  { batchId, line, customId }: FrameSubject,
  code: LineErrorCode,
): EncodedFrame {
  const payload = errorLine({ lineId: lineId(batchId, line.offset), customId, code });
  const { offset, tries } = line;
  return frameOf({ offset, kind: FRAME_KIND.error, status: 0, tries, usage: NO_USAGE }, payload);
}

function frameOf(header: NewFrame, payload: Uint8Array): EncodedFrame {
  const bytes = encodeFrame(header, payload, crc32);
  return { header: { ...header, payloadLength: payload.length }, bytes };
}
