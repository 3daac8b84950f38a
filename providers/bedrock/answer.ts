import { isJsonObject } from '../../core/openai/json-object';
import { chatCompletion, type ChatUsage, type FinishReason } from '../chat/completion';
import { tokenCount } from '../chat/token-count';
import type { Json } from '../chat/values';

/** What an answer states that the response does not say. */
export interface AnswerContext {
  /** The line's id at the provider, and the id of the answer: Converse gives none. */
  readonly wireId: string;
  /** The name of the model that the line uses. */
  readonly model: string;
  /** Unix s. */
  readonly createdSec: number;
}

/** OpenAI's words for `stopReason`. It has none for the others, which are `stop`. */
const REASONS: ReadonlyMap<unknown, FinishReason> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['content_filtered', 'content_filter'],
  ['guardrail_intervened', 'content_filter'],
]);

/**
 * Translates the body of a `Converse` response into a `chat.completion` (docs/design/providers.md#amazon-bedrock); null
 * if it has no content. Pure and total: what has an unexpected shape counts as absent.
 */
export function completionOf(response: unknown, context: AnswerContext): Buffer | null {
  const message = objectIn(objectIn(response, 'output'), 'message');
  const content: unknown = message?.['content'];
  if (!isJsonObject(response) || !Array.isArray(content)) return null;
  const blocks = (content as readonly unknown[]).filter(isJsonObject);
  const thoughts = blocks
    .map((block) => objectIn(objectIn(block, 'reasoningContent'), 'reasoningText'))
    .map(textOf)
    .join('');
  return chatCompletion({
    id: context.wireId,
    created: context.createdSec,
    model: context.model,
    content: blocks.map(textOf).join(''),
    reasoning: thoughts === '' ? null : thoughts,
    toolCalls: [],
    finishReason: REASONS.get(response['stopReason']) ?? 'stop',
    usage: usageOf(response['usage']),
  });
}

/** Converse counts cached tokens apart from `inputTokens`; OpenAI counts them within the prompt. */
function usageOf(usage: unknown): ChatUsage {
  const cached = tokenCount(usage, 'cacheReadInputTokens');
  return {
    prompt: tokenCount(usage, 'inputTokens') + cached + tokenCount(usage, 'cacheWriteInputTokens'),
    cached,
    completion: tokenCount(usage, 'outputTokens'),
    reasoning: null,
  };
}

function objectIn(value: unknown, name: string): Json | null {
  const member: unknown = isJsonObject(value) ? value[name] : null;
  return isJsonObject(member) ? member : null;
}

function textOf(block: Json | null): string {
  const text = block?.['text'];
  return typeof text === 'string' ? text : '';
}
