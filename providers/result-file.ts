import { isAscii, isUtf8 } from 'node:buffer';
import { createLineSplitter } from '../core/openai/line-splitter';
import type { IdempotentResult, LineResult, ResultTotals } from './provider';

/** How the lines of result files are read. */
export interface ResultFileOptions {
  /** A longer line counts as malformed. */
  readonly maxLineBytes: number;
  /** Reads a line; null if it is not a result. The result shares no memory with the line. */
  readonly read: (line: Buffer) => LineResult | null;
  readonly take: (result: LineResult) => void | Promise<void>;
}

/**
 * Reads result files, one after another.
 * @param download passes the bytes of a file to `take`, and ends with what happened to the call
 */
export async function readResultFiles<File>(
  files: readonly File[],
  options: ResultFileOptions,
  download: (
    file: File,
    take: (piece: Buffer) => Promise<void>,
  ) => Promise<IdempotentResult<unknown>>,
): Promise<IdempotentResult<ResultTotals>> {
  const reader = new ResultReader(options);
  for (const file of files) {
    const result = await download(file, (piece) => reader.push(piece));
    if (result.outcome !== 'ok') return result;
    await reader.endFile();
  }
  return { outcome: 'ok', value: reader.totals };
}

/** Reads result files piece by piece. It holds one line, and the results of one piece. */
export class ResultReader {
  readonly #options: ResultFileOptions;
  #splitter: ReturnType<typeof createLineSplitter>;
  #ready: LineResult[] = [];
  #results = 0;
  #malformed = 0;

  constructor(options: ResultFileOptions) {
    this.#options = options;
    this.#splitter = this.#createSplitter();
  }

  get totals(): ResultTotals {
    return { results: this.#results, malformed: this.#malformed };
  }

  /** Takes the next bytes of the current file. */
  async push(piece: Buffer): Promise<void> {
    this.#splitter.push(piece);
    await this.#pass();
  }

  /** The current file has ended; the next bytes are those of another file. */
  async endFile(): Promise<void> {
    this.#splitter.end();
    await this.#pass();
    this.#splitter = this.#createSplitter();
  }

  async #pass(): Promise<void> {
    for (const result of this.#ready.splice(0)) {
      this.#results++;
      await this.#options.take(result);
    }
  }

  #createSplitter(): ReturnType<typeof createLineSplitter> {
    const { maxLineBytes, read } = this.#options;
    return createLineSplitter({
      maxLineBytes,
      checks: { isAscii, isUtf8 },
      consumer: {
        line: ({ bytes, start, end }) => {
          const result = read(bytes.subarray(start, end));
          if (result === null) this.#malformed++;
          else this.#ready.push(result);
        },
        tooLong: () => void this.#malformed++,
      },
    });
  }
}
