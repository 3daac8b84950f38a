import { crc32 } from 'node:zlib';
import { NO_USAGE } from '../../core/batch/counts';
import type { FrameHeader } from '../../core/journal/frame';
import { encodeFrame, FRAME_KIND } from '../../core/journal/frame';
import { lineId } from '../../core/names/ids';
import { embedAnswer } from '../../core/openai/answer';
import { modelTag } from '../../core/openai/answer-model';
import type { LineErrorCode } from '../../core/openai/result-line';
import { answerLine, errorLine } from '../../core/openai/result-line';
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

/** The frame with a model server's answer. */
export function answerFrame(
  { batchId, line, customId }: FrameSubject,
  answer: Pick<BackendAnswer, 'status' | 'requestId' | 'body'>,
): EncodedFrame {
  const { status, requestId } = answer;
  const embedded = embedAnswer(status, answer.body);
  const id = lineId(batchId, line.offset);
  const payload = answerLine({ lineId: id, customId, status, requestId, embedded });
  const header = {
    offset: line.offset,
    kind: embedded.ok ? FRAME_KIND.output : FRAME_KIND.error,
    status,
    tries: line.tries,
    usage: embedded.usage,
    payloadLength: payload.length,
    modelTag: modelTag(embedded.model),
  };
  return { header, bytes: encodeFrame(header, payload, crc32) };
}

/** The frame that settles a line with an error code of ours, because there is no answer of a model server. */
export function errorFrame(
  { batchId, line, customId }: FrameSubject,
  code: LineErrorCode,
): EncodedFrame {
  const payload = errorLine({ lineId: lineId(batchId, line.offset), customId, code });
  const header = {
    offset: line.offset,
    kind: FRAME_KIND.error,
    status: 0,
    tries: line.tries,
    usage: NO_USAGE,
    payloadLength: payload.length,
  };
  return { header, bytes: encodeFrame(header, payload, crc32) };
}
