import { withExtraBody } from '../chat/extra-body';
import { readChatRequest, type ChatRequest, type ResponseFormat } from '../chat/request';
import { TranslationScope, translating } from '../chat/scope';
import { dropSeedAndPenalties } from '../chat/seed-and-penalties';
import { systemTextOf } from '../chat/system-text';
import type { ChatTool } from '../chat/tools';
import type { Json } from '../chat/values';
import type { EncodedLine, LineToEncode } from '../provider';
import { messagesOf } from './messages';

/** From this version on, the API refuses `temperature`, `top_p` and `top_k`. */
const WITHOUT_SAMPLING = '2026-10-21';
const CHOICES = { auto: 'auto', required: 'any', none: 'none' } as const;

/**
 * One element of `requests` of a Message Batch
 * (https://platform.claude.com/docs/en/api/creating-message-batches). Pure, and total for any JSON object.
 * @param apiVersion the value of `anthropic-version`
 */
export function encodeRequest(
  {
    wireId,
    model,
    body,
    translation,
  }: Pick<LineToEncode, 'wireId' | 'model' | 'body' | 'translation'>,
  apiVersion: string,
): EncodedLine {
  const { dropParams, defaultMaxTokens, extraBody } = translation;
  const given = JSON.parse(body.toString('utf8')) as Json;
  const params = translating(() => {
    const scope = new TranslationScope(dropParams);
    const request = messageRequest(readChatRequest(given, scope), scope, {
      defaultMaxTokens,
      takesSampling: apiVersion < WITHOUT_SAMPLING,
    });
    return { params: withExtraBody({ model: model ?? given['model'], ...request }, extraBody) };
  });
  if ('kind' in params) return params;
  return { kind: 'line', bytes: Buffer.from(JSON.stringify({ custom_id: wireId, ...params })) };
}

/** The parameters of `POST /v1/messages` beside the model. Members without a value are left out when it is written. */
function messageRequest(
  request: ChatRequest,
  scope: TranslationScope,
  {
    defaultMaxTokens,
    takesSampling,
  }: { readonly defaultMaxTokens: number; readonly takesSampling: boolean },
): Json {
  dropSeedAndPenalties(request, scope);
  const { messages, maxTokens, tools, stop } = request;
  const stops = stop.filter((one, i) => {
    const isBlank = one.trim() === '';
    if (isBlank) scope.drop(`stop[${i}]`, 'the provider takes no blank stop sequence');
    return !isBlank;
  });
  return {
    max_tokens: maxTokens?.value ?? defaultMaxTokens,
    system: systemTextOf(messages, scope) ?? undefined,
    messages: messagesOf(messages, scope),
    ...samplingOf(request, scope, takesSampling),
    stop_sequences: stops.length === 0 ? undefined : stops,
    tools: tools.length === 0 ? undefined : tools.map(toolOf),
    tool_choice: toolChoiceOf(request, scope),
    output_config: outputConfigOf(request.responseFormat, scope),
  };
}

function samplingOf(
  { temperature, topP }: ChatRequest,
  scope: TranslationScope,
  isTaken: boolean,
): Json {
  const member = (param: string, value: number | null): number | undefined => {
    if (value === null) return undefined;
    if (isTaken) return scope.within(param, value, [0, 1]);
    scope.drop(param, 'this version of the API has no such member');
    return undefined;
  };
  return { temperature: member('temperature', temperature), top_p: member('top_p', topP) };
}

function toolOf({ name, description, parameters, isStrict }: ChatTool): Json {
  return {
    name,
    description: description ?? undefined,
    input_schema: { type: 'object', ...parameters },
    strict: isStrict ? true : undefined,
  };
}

/** OpenAI says apart from the choice whether calls may be parallel. */
function toolChoiceOf(
  { tools, toolChoice, parallelToolCalls }: ChatRequest,
  scope: TranslationScope,
): Json | undefined {
  if (tools.length === 0) {
    const isForced = toolChoice?.kind === 'required' || toolChoice?.kind === 'tool';
    return isForced ? scope.refuse('tool_choice', 'there are no tools') : undefined;
  }
  if (toolChoice?.kind === 'none') return { type: 'none' };
  const serial = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {};
  if (toolChoice === null)
    return parallelToolCalls === false ? { type: 'auto', ...serial } : undefined;
  if (toolChoice.kind === 'tool') return { type: 'tool', name: toolChoice.name, ...serial };
  return { type: CHOICES[toolChoice.kind], ...serial };
}

function outputConfigOf(format: ResponseFormat | null, scope: TranslationScope): Json | undefined {
  if (format === null) return undefined;
  if (format.kind === 'json_schema') {
    return { format: { type: 'json_schema', schema: format.schema } };
  }
  scope.drop('response_format', 'the provider takes json_schema only');
  return undefined;
}
