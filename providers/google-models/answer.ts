import { isJsonObject } from '../../core/openai/json-object';
import { chatCompletion, type AnsweredCall, type ChatUsage } from '../chat/completion';
import { tokenCount } from '../chat/token-count';
import type { Json } from '../chat/values';
import { finishReasonOf } from './finish-reason';

/** What an answer states that the response does not say. */
export interface AnswerContext {
  /** The line's id at the provider. Ids of tool calls are made from it, because Google's are optional. */
  readonly wireId: string;
  /** The name of the model that the line uses. */
  readonly model: string;
  /** Unix s. */
  readonly createdSec: number;
}

/**
 * Translates a `GenerateContentResponse` into OpenAI's `chat.completion`
 * (docs/design/providers.md#google-models); null if it has neither a candidate nor a blocked prompt. Pure and total:
 * what has an unexpected shape counts as absent.
 */
export function completionOf(response: unknown, context: AnswerContext): Buffer | null {
  if (!isJsonObject(response)) return null;
  const candidate = firstObject(response['candidates']);
  if (candidate === null && !isPromptBlocked(response['promptFeedback'])) return null;
  const parts = partsOf(candidate?.['content']);
  const toolCalls = toolCallsOf(parts, context.wireId);
  const text = textOf(parts, false);
  const thoughts = textOf(parts, true);
  // A blocked prompt has no candidate. Its answer is empty.
  const reason = candidate === null ? 'content_filter' : finishReasonOf(candidate['finishReason']);
  return chatCompletion({
    id: responseIdOf(response) ?? context.wireId,
    created: context.createdSec,
    model: context.model,
    content: text === '' && toolCalls.length > 0 ? null : text,
    reasoning: thoughts === '' ? null : thoughts,
    toolCalls,
    finishReason: reason === 'stop' && toolCalls.length > 0 ? 'tool_calls' : reason,
    usage: usageOf(response['usageMetadata']),
  });
}

/** The id of a response; null without one. */
export function responseIdOf(response: unknown): string | null {
  const id: unknown = isJsonObject(response) ? response['responseId'] : null;
  return typeof id === 'string' && id !== '' ? id : null;
}

/**
 * Google counts thoughts apart from candidates; OpenAI counts reasoning within the completion. The model reads the
 * results of built-in tools, so they count as prompt.
 */
function usageOf(metadata: unknown): ChatUsage {
  const count = (name: string): number => tokenCount(metadata, name);
  const reasoning = count('thoughtsTokenCount');
  return {
    prompt: count('promptTokenCount') + count('toolUsePromptTokenCount'),
    cached: count('cachedContentTokenCount'),
    completion: count('candidatesTokenCount') + reasoning,
    reasoning,
  };
}

function toolCallsOf(parts: readonly Json[], wireId: string): readonly AnsweredCall[] {
  return parts
    .map(({ functionCall }) => functionCall)
    .filter(isJsonObject)
    .map(({ name, args }, index) => ({
      id: `call_${wireId}_${index}`,
      name: typeof name === 'string' ? name : '',
      arguments: isJsonObject(args) ? args : {},
    }));
}

function textOf(parts: readonly Json[], isThought: boolean): string {
  return parts
    .filter(({ thought }) => (thought === true) === isThought)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('');
}

function partsOf(content: unknown): readonly Json[] {
  const parts: unknown = isJsonObject(content) ? content['parts'] : null;
  return Array.isArray(parts) ? parts.filter(isJsonObject) : [];
}

function isPromptBlocked(feedback: unknown): boolean {
  return isJsonObject(feedback) && typeof feedback['blockReason'] === 'string';
}

function firstObject(list: unknown): Json | null {
  const first: unknown = Array.isArray(list) ? list[0] : null;
  return isJsonObject(first) ? first : null;
}
