import { withExtraBody } from '../chat/extra-body';
import { readChatRequest, type ChatRequest, type ResponseFormat } from '../chat/request';
import { TranslationScope, translating } from '../chat/scope';
import { dropSeedAndPenalties } from '../chat/seed-and-penalties';
import { systemTextOf } from '../chat/system-text';
import type { Json } from '../chat/values';
import type { EncodedLine, LineToEncode } from '../provider';
import { messagesOf, NO_TOOLS } from './messages';

/**
 * A record of a batch inference job of the type `Converse`
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html). Pure, and total for any JSON
 * object. The job names the model.
 */
export function encodeRecord({
  wireId,
  body,
  translation,
}: Pick<LineToEncode, 'wireId' | 'body' | 'translation'>): EncodedLine {
  const { dropParams, extraBody } = translation;
  const input = translating(() => {
    const scope = new TranslationScope(dropParams);
    const request = readChatRequest(JSON.parse(body.toString('utf8')) as Json, scope);
    return { modelInput: withExtraBody(converseRequest(request, scope), extraBody) };
  });
  if ('kind' in input) return input;
  return { kind: 'line', bytes: Buffer.from(JSON.stringify({ recordId: wireId, ...input })) };
}

/**
 * The body of a `Converse` request (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html).
 * Members without a value are left out when it is written.
 */
function converseRequest(request: ChatRequest, scope: TranslationScope): Json {
  dropSeedAndPenalties(request, scope);
  const { messages, tools, responseFormat } = request;
  if (tools.length > 0) scope.refuse('tools', NO_TOOLS);
  const system = systemTextOf(messages, scope);
  return {
    messages: messagesOf(messages, scope),
    system: system === null ? undefined : [{ text: system }],
    inferenceConfig: inferenceConfigOf(request, scope),
    outputConfig: outputConfigOf(responseFormat, scope),
  };
}

function inferenceConfigOf(request: ChatRequest, scope: TranslationScope): Json | undefined {
  const { maxTokens, temperature, topP, stop } = request;
  const share = (param: string, value: number | null): number | undefined =>
    value === null ? undefined : scope.within(param, value, [0, 1]);
  const config = {
    maxTokens: maxTokens?.value,
    temperature: share('temperature', temperature),
    topP: share('top_p', topP),
    stopSequences: stop.length === 0 ? undefined : stop,
  };
  return Object.values(config).every((value) => value === undefined) ? undefined : config;
}

/** The schema is a text in it. */
function outputConfigOf(format: ResponseFormat | null, scope: TranslationScope): Json | undefined {
  if (format === null) return undefined;
  if (format.kind === 'json_schema') {
    const jsonSchema = { name: format.name, schema: JSON.stringify(format.schema) };
    return { textFormat: { type: 'json_schema', structure: { jsonSchema } } };
  }
  scope.drop('response_format', 'the provider takes json_schema only');
  return undefined;
}
