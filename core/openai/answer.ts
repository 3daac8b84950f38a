import { createAnswerIndex, type AnswerIndex } from './answer-index';
import { embedAnyAnswer } from './any-answer';
import type { EmbeddedAnswer } from './embedded-answer';

/** Made with the first answer; null if the machine or the settings of Node do not allow it. */
let index: AnswerIndex | null | undefined;

/**
 * Embeds an answer (docs/design/api-contract.md#embedded-answers). A JSON object in valid UTF-8 without a
 * BOM keeps every token: numbers, escapes and repeated members stay as they are. Only white space outside
 * strings is removed, and non-ASCII characters are escaped. Anything else becomes an `invalid_response`
 * error with its first 2,000 characters.
 */
export function embedAnswer(status: number, body: Buffer): EmbeddedAnswer {
  if (index === undefined) index = createAnswerIndex();
  return index?.embed(status, body) ?? embedAnyAnswer(status, body);
}
