import { crc32 } from 'node:zlib';
import { NO_USAGE } from '../../core/batch/counts';
import { lineId } from '../../core/names/ids';
import type { FrameHeader } from '../../core/journal/frame';
import { encodeFrame, FRAME_KIND } from '../../core/journal/frame';
import type { LineErrorCode } from '../../core/openai/result-line';
import { errorLine } from '../../core/openai/result-line';
import type { ChunkLine } from './chunk-ledger';

/** A frame ready for the journal: its header, and header and payload as bytes. */
export interface EncodedFrame {
  readonly header: FrameHeader;
  readonly bytes: Buffer;
}

/** What stands in the error file for a line without an HTTP answer. */
export interface LineFault {
  readonly batchId: string;
  readonly customId: string;
  readonly code: LineErrorCode;
}

/** The frame that settles `line` with an error of ours. */
export function errorFrame(line: ChunkLine, { batchId, customId, code }: LineFault): EncodedFrame {
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
