import { readLineFields } from '../../core/openai/member-ranges';
import type { EncodedFrame } from './answer-frames';
import type { ChunkLine } from './chunk-ledger';
import { LineResults, type LineResultsOptions } from './line-results';
import { LineTry, type TryParts, type TryRun, type TrySubject } from './line-try';
import { requestTimeoutOf } from './request-timeout';

/** What all tries of a chunk share. */
export type LineSenderOptions = LineResultsOptions & Omit<TryParts, 'results' | 'timeoutMs'>;

/** Makes the tries of one chunk. Permits, time slices and ends are the caller's concern. */
export class LineSender {
  readonly #parts: TryParts;

  constructor(options: LineSenderOptions) {
    const { chunk, route } = options;
    const results = new LineResults(options);
    const timeoutMs = requestTimeoutOf(route.gateway, chunk.endpoint);
    this.#parts = { ...options, results, timeoutMs };
  }

  /** A try, which the caller starts. */
  try(run: TryRun, subject: TrySubject): LineTry {
    return new LineTry(this.#parts, run, subject);
  }

  /** The error frame of a poison line, which is not sent any more. */
  async poisonAnswer(line: ChunkLine): Promise<EncodedFrame> {
    const { input, results } = this.#parts;
    const bytes = await input.read(line.offset, line.length);
    return results.ended(line, readLineFields(bytes).customId, 'internal_error');
  }
}
