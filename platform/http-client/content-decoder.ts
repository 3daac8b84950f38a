import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Transform } from 'node:stream';

/** Receives the decoded bytes of a {@link ContentDecoder}. */
export interface DecoderSink {
  onBytes(chunk: Buffer): void;
  onEnd(): void;
  onBroken(error: Error): void;
  /** A coding unpacked to more than `maxBytes`. The sink must destroy the decoder. */
  onTooLarge(): void;
}

/** Limits of the decoding. */
export interface DecoderOptions {
  /**
   * Bytes that each coding but the last may unpack to. The reader limits the output of the last coding. An
   * earlier coding could unpack a few bytes to gigabytes that the reader never sees.
   */
  readonly maxBytes: number;
  /** Called when `write` had returned false and may be called again. */
  onDrain(): void;
}

/** Decodes one response piece by piece. */
export interface ContentDecoder {
  /** @returns false if nothing more should be written before `onDrain` */
  write(chunk: Buffer): boolean;
  end(): void;
  /** Back-pressure: the sink gets no bytes until `resume`. Soon `write` returns false. */
  pause(): void;
  resume(): void;
  /** Stops; the sink is not called again. */
  destroy(): void;
}

/** Each coding needs a decompressor; real responses have one coding. */
const MAX_CODINGS = 4;
const KNOWN_CODINGS = ['gzip', 'x-gzip', 'deflate', 'br'];

/**
 * The decoder for a `content-encoding` value. Null if the bytes stay as they are: no coding, `identity`, an
 * unknown coding, or more than four.
 */
export function createContentDecoder(
  encoding: string,
  sink: DecoderSink,
  options: DecoderOptions,
): ContentDecoder | null {
  const codings = encoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
    .reverse();
  const isKnown = codings.every((coding) => KNOWN_CODINGS.includes(coding));
  if (codings.length === 0 || codings.length > MAX_CODINGS || !isKnown) return null;
  return new DecoderChain(codings, sink, options);
}

class DecoderChain implements ContentDecoder {
  readonly #codings: readonly string[];
  readonly #sink: DecoderSink;
  readonly #options: DecoderOptions;
  /** Created at the first byte, because an empty body with a coding is an empty response. */
  #stages: readonly Transform[] = [];
  #isDestroyed = false;

  constructor(codings: readonly string[], sink: DecoderSink, options: DecoderOptions) {
    this.#codings = codings;
    this.#sink = sink;
    this.#options = options;
  }

  write(chunk: Buffer): boolean {
    if (this.#stages.length === 0) this.#start(chunk[0] ?? 0);
    return this.#stages[0]?.write(chunk) ?? true;
  }

  end(): void {
    const [first] = this.#stages;
    if (first === undefined) this.#sink.onEnd();
    else first.end();
  }

  pause(): void {
    this.#stages.at(-1)?.pause();
  }

  resume(): void {
    this.#stages.at(-1)?.resume();
  }

  destroy(): void {
    this.#isDestroyed = true;
    for (const stage of this.#stages) stage.destroy();
  }

  #start(firstByte: number): void {
    const stages = this.#codings.map((coding, index) =>
      transformOf(coding, index === 0 ? firstByte : null),
    );
    stages.forEach((stage, index) => {
      stage.on('error', (error) => this.#tell(() => this.#sink.onBroken(error)));
      const next = stages[index + 1];
      if (next === undefined) this.#deliver(stage);
      else this.#connect(stage, next);
    });
    stages[0]?.on('drain', () => this.#tell(() => this.#options.onDrain()));
    this.#stages = stages;
  }

  #deliver(last: Transform): void {
    last.on('data', (chunk: Buffer) => this.#tell(() => this.#sink.onBytes(chunk)));
    last.on('end', () => this.#tell(() => this.#sink.onEnd()));
  }

  #connect(stage: Transform, next: Transform): void {
    const { maxBytes } = this.#options;
    let bytes = 0;
    stage.on('data', (chunk: Buffer) => {
      const before = bytes;
      bytes += chunk.length;
      if (before <= maxBytes && bytes > maxBytes) this.#tell(() => this.#sink.onTooLarge());
    });
    stage.pipe(next);
  }

  #tell(event: () => void): void {
    if (!this.#isDestroyed) event();
  }
}

/** `deflate` means the zlib format, but some servers send raw deflate; the first byte distinguishes them. */
function transformOf(coding: string, firstByte: number | null): Transform {
  if (coding === 'br') return createBrotliDecompress();
  if (coding !== 'deflate') return createGunzip();
  return firstByte !== null && (firstByte & 0x0f) !== 8 ? createInflateRaw() : createInflate();
}
