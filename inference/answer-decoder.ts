import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Transform } from 'node:stream';

/** Told about what comes out of an {@link AnswerDecoder}. */
export interface DecoderSink {
  onBytes(chunk: Buffer): void;
  onEnd(): void;
  onBroken(error: Error): void;
  /** More came out of a coding than `maxBytes`; nothing follows. */
  onTooLarge(): void;
}

/** Bounds of the decoding, and who hears that there is room again. */
export interface DecoderOptions {
  /**
   * Bytes that each coding may unpack to. What comes out of the last one is limited by its reader; the
   * ones before it could make gigabytes of a few bytes that the reader never sees.
   */
  readonly maxBytes: number;
  onRoom(): void;
}

/** Undoes the content codings of one answer, piece by piece. */
export interface AnswerDecoder {
  /** @returns false when no more should be given until `onRoom` was called. */
  write(chunk: Buffer): boolean;
  end(): void;
  /** Stops without a further word to the sink. */
  destroy(): void;
}

/**
 * The decoder for a `content-encoding` value, or null where nothing is to be undone: no coding,
 * `identity`, or one that we do not know (the bytes are then kept as they came).
 */
export function createAnswerDecoder(
  encoding: string,
  sink: DecoderSink,
  options: DecoderOptions,
): AnswerDecoder | null {
  const codings = encoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
    .reverse();
  if (codings.length === 0 || codings.length > 4 || !codings.every(isKnown)) return null;
  return chain(codings, sink, options);
}

function isKnown(coding: string): boolean {
  return ['gzip', 'x-gzip', 'deflate', 'br'].includes(coding);
}

/** Streams are made at the first byte: an empty body with a coding is an empty answer. */
function chain(
  codings: readonly string[],
  sink: DecoderSink,
  { maxBytes, onRoom }: DecoderOptions,
): AnswerDecoder {
  let stages: Transform[] = [];
  let destroyed = false;
  const start = (firstByte: number): Transform => {
    stages = codings.map((coding, index) => transformOf(coding, index === 0 ? firstByte : null));
    stages.forEach((stage, index) => {
      stage.on('error', (error) => !destroyed && sink.onBroken(error));
      const next = stages[index + 1];
      if (next) {
        onOverflow(stage, maxBytes, () => !destroyed && sink.onTooLarge());
        stage.pipe(next);
      } else stage.on('data', (chunk: Buffer) => !destroyed && sink.onBytes(chunk));
      if (!next) stage.on('end', () => !destroyed && sink.onEnd());
    });
    stages[0]?.on('drain', () => !destroyed && onRoom());
    return stages[0] as Transform;
  };
  return {
    write: (chunk) => (stages[0] ?? start(chunk[0] ?? 0)).write(chunk),
    end: () => (stages[0] ? stages[0].end() : sink.onEnd()),
    destroy: () => {
      destroyed = true;
      for (const stage of stages) stage.destroy();
    },
  };
}

/** Calls `onTooLarge` once, when more than `maxBytes` have come out of the stage. */
function onOverflow(stage: Transform, maxBytes: number, onTooLarge: () => void): void {
  let bytes = 0;
  stage.on('data', (chunk: Buffer) => {
    const before = bytes;
    bytes += chunk.length;
    if (before <= maxBytes && bytes > maxBytes) onTooLarge();
  });
}

/** `deflate` means zlib, but some servers send it raw: the first byte tells. */
function transformOf(coding: string, firstByte: number | null): Transform {
  if (coding === 'br') return createBrotliDecompress();
  if (coding !== 'deflate') return createGunzip();
  return firstByte !== null && (firstByte & 0x0f) !== 8 ? createInflateRaw() : createInflate();
}
