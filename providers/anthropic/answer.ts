import { isJsonObject } from '../../core/openai/json-object';
import {
  chatCompletion,
  type AnsweredCall,
  type ChatUsage,
  type FinishReason,
} from '../chat/completion';
import { tokenCount } from '../chat/token-count';
import type { Json } from '../chat/values';

/** What an answer states that the message does not say. */
export interface AnswerContext {
  /** The line's id at the provider. */
  readonly wireId: string;
  /** The name of the model that the line uses. */
  readonly model: string;
  /** Unix s. */
  readonly createdSec: number;
}

/** OpenAI's words for `stop_reason`. It has none for the others, which are `stop`. */
const REASONS: ReadonlyMap<unknown, FinishReason> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

/**
 * Translates a message of Anthropic into a `chat.completion` (docs/design/providers.md#anthropic); null if it has no
 * content. Pure and total: what has an unexpected shape counts as absent.
 */
export function completionOf(message: unknown, context: AnswerContext): Buffer | null {
  if (!isJsonObject(message) || !Array.isArray(message['content'])) return null;
  const { id, content, stop_reason: reason, usage } = message;
  const blocks = (content as readonly unknown[]).filter(isJsonObject);
  const toolCalls = blocks.filter(({ type }) => type === 'tool_use').map(answeredCall);
  const text = joined(blocks, 'text', 'text');
  const thoughts = joined(blocks, 'thinking', 'thinking');
  return chatCompletion({
    id: typeof id === 'string' && id !== '' ? id : context.wireId,
    created: context.createdSec,
    model: context.model,
    content: text === '' && toolCalls.length > 0 ? null : text,
    reasoning: thoughts === '' ? null : thoughts,
    toolCalls,
    finishReason: REASONS.get(reason) ?? 'stop',
    usage: usageOf(usage),
  });
}

function joined(blocks: readonly Json[], type: string, member: string): string {
  return blocks
    .filter((block) => block['type'] === type)
    .map((block) => textOf(block[member]))
    .join('');
}

function answeredCall({ id, name, input }: Json): AnsweredCall {
  return { id: textOf(id), name: textOf(name), arguments: input };
}

/** Anthropic counts cached tokens apart from `input_tokens`; OpenAI counts them within the prompt. */
function usageOf(usage: unknown): ChatUsage {
  const cached = tokenCount(usage, 'cache_read_input_tokens');
  const details: unknown = isJsonObject(usage) ? usage['output_tokens_details'] : null;
  return {
    prompt:
      tokenCount(usage, 'input_tokens') + cached + tokenCount(usage, 'cache_creation_input_tokens'),
    cached,
    completion: tokenCount(usage, 'output_tokens'),
    reasoning: isJsonObject(details) ? tokenCount(details, 'thinking_tokens') : null,
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
