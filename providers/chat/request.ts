import { readMessages, type ChatMessage } from './messages';
import { isTooDeep, TOO_DEEP } from './nesting';
import type { TranslationScope } from './scope';
import { readToolChoice, readTools, type ChatTool, type ToolChoice } from './tools';
import { isAbsent, Values, type Json } from './values';

/**
 * A chat completion request, without what no other format has
 * (https://platform.openai.com/docs/api-reference/chat/create). What a vendor cannot express of it, the
 * vendor's translator refuses.
 */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** `max_completion_tokens`, else `max_tokens`, with the name that was given; null without a limit. */
  readonly maxTokens: { readonly value: number; readonly param: string } | null;
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly stop: readonly string[];
  readonly seed: number | null;
  readonly presencePenalty: number | null;
  readonly frequencyPenalty: number | null;
  readonly tools: readonly ChatTool[];
  readonly toolChoice: ToolChoice | null;
  readonly parallelToolCalls: boolean | null;
  readonly responseFormat: ResponseFormat | null;
}

/** The form that an answer must have; null stands for plain text. */
export type ResponseFormat =
  | { readonly kind: 'json_object' }
  | { readonly kind: 'json_schema'; readonly name: string; readonly schema: Json };

/** Members that say nothing about the answer: they are left out everywhere. */
const DROPPED = [
  ...['model', 'user', 'metadata', 'store', 'service_tier', 'stream_options'],
  ...['safety_identifier', 'prompt_cache_key', 'prompt_cache_retention'],
];
/** Members that are read below. */
const READ = [
  ...['messages', 'max_completion_tokens', 'max_tokens', 'temperature', 'top_p', 'stop', 'seed'],
  ...['presence_penalty', 'frequency_penalty', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['response_format', 'stream', 'n', 'logprobs', 'modalities'],
];

/** Reads a request. A member that no format expresses is refused or dropped, as `scope` says. */
export function readChatRequest(body: Json, scope: TranslationScope): ChatRequest {
  const values = new Values(scope);
  values.only(body, [...READ, ...DROPPED], '');
  for (const name of READ) if (isTooDeep(body[name])) scope.refuse(name, TOO_DEEP);
  checkConstants(body, scope);
  const number = (name: string) => values.numberOrNull(body[name], name);
  return {
    messages: readMessages(body['messages'], values, scope),
    maxTokens: maxTokensOf(body, values),
    temperature: number('temperature'),
    topP: number('top_p'),
    stop: stopOf(body['stop'], values),
    seed: number('seed'),
    presencePenalty: number('presence_penalty'),
    frequencyPenalty: number('frequency_penalty'),
    tools: readTools(body['tools'], values, scope),
    toolChoice: readToolChoice(body['tool_choice'], values, scope),
    parallelToolCalls: values.booleanOrNull(body['parallel_tool_calls'], 'parallel_tool_calls'),
    responseFormat: responseFormatOf(body['response_format'], values, scope),
  };
}

/** Members of which one value is expressed by leaving them out. */
function checkConstants(body: Json, scope: TranslationScope): void {
  const { stream, n, logprobs, modalities } = body;
  if (stream === true) scope.refuse('stream', 'a batch has no streams');
  if (!isAbsent(n) && n !== 1) scope.drop('n', 'the provider gives one choice');
  if (!isAbsent(logprobs) && logprobs !== false) {
    scope.drop('logprobs', 'the provider has no log probabilities');
  }
  const isText = Array.isArray(modalities) && modalities.every((one) => one === 'text');
  if (!isAbsent(modalities) && !isText) scope.drop('modalities', 'answers are text');
}

function maxTokensOf(body: Json, values: Values): ChatRequest['maxTokens'] {
  for (const param of ['max_completion_tokens', 'max_tokens']) {
    const value = values.numberOrNull(body[param], param);
    if (value !== null) return { value, param };
  }
  return null;
}

function stopOf(stop: unknown, values: Values): readonly string[] {
  if (isAbsent(stop)) return [];
  if (typeof stop === 'string') return [stop];
  return values.array(stop, 'stop').map((one, i) => values.text(one, `stop[${i}]`));
}

function responseFormatOf(
  value: unknown,
  values: Values,
  scope: TranslationScope,
): ResponseFormat | null {
  if (isAbsent(value)) return null;
  const path = 'response_format';
  const format = values.object(value, path);
  switch (format['type']) {
    case 'text':
      return null;
    case 'json_object':
      return { kind: 'json_object' };
    case 'json_schema': {
      const given = values.object(format['json_schema'], `${path}.json_schema`);
      const schema = values.object(given['schema'] ?? {}, `${path}.json_schema.schema`);
      const name = values.textOrNull(given['name'], `${path}.json_schema.name`) ?? 'answer';
      return { kind: 'json_schema', name, schema };
    }
    default:
      return scope.refuse(`${path}.type`, 'expected text, json_object or json_schema');
  }
}
