import type { FinishReason } from '../chat/completion';

const REASONS: ReadonlyMap<unknown, FinishReason> = new Map([
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['MODEL_ARMOR', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
]);

/**
 * OpenAI's word for a `FinishReason` of Google (https://ai.google.dev/api/generate-content#FinishReason). OpenAI has
 * no word for most of them; they and unknown ones are `stop`.
 */
export function finishReasonOf(word: unknown): FinishReason {
  return REASONS.get(word) ?? 'stop';
}
