import type { Usage } from '../batch/counts';

/** An answer of a model server, ready to be the `body` of a result line. */
export interface EmbeddedAnswer {
  /** Whether the status is 2xx and the body a valid JSON object. If so, the line goes to the output file. */
  readonly ok: boolean;
  /** ASCII JSON without white space outside strings: the answer token by token, or the wrapped error. */
  readonly json: Buffer;
  /** Zeros unless `ok`: the usage of a batch is the sum over its output lines. */
  readonly usage: Usage;
  /** The answer's `model`; null unless `ok`, or if it names none. */
  readonly model: string | null;
}
