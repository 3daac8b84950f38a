import { withExtraBody } from '../chat/extra-body';
import { readChatRequest, type ChatRequest } from '../chat/request';
import type { TranslationScope } from '../chat/scope';
import { systemTextOf } from '../chat/system-text';
import type { ChatTool, ToolChoice } from '../chat/tools';
import type { Json } from '../chat/values';
import { contentsOf } from './contents';
import { schemaOf } from './schema';

/** Google takes at most 5 stop sequences (https://ai.google.dev/api/generate-content#generationconfig). */
const MAX_STOPS = 5;
const MODES = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const;

/**
 * Translates the body of a chat completion into a `GenerateContentRequest`
 * (docs/design/providers.md#google-models). Pure. What cannot be expressed is refused or dropped, as `scope` says.
 * @param extraBody members to set in the translated request
 */
export function generateContentRequest(body: Json, scope: TranslationScope, extraBody: Json): Json {
  const request = readChatRequest(body, scope);
  const system = systemTextOf(request.messages, scope);
  const config = generationConfigOf(request, scope);
  const translated = {
    contents: contentsOf(request.messages, scope),
    ...(system === null ? {} : { systemInstruction: { parts: [{ text: system }] } }),
    ...toolsOf(request, scope),
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
  };
  return withExtraBody(translated, extraBody);
}

function generationConfigOf(request: ChatRequest, scope: TranslationScope): Json {
  const { maxTokens, temperature, topP, seed, presencePenalty, frequencyPenalty } = request;
  const { stop, responseFormat } = request;
  if (stop.length > MAX_STOPS) scope.drop('stop', `the provider takes at most ${MAX_STOPS}`);
  const path = 'response_format.json_schema.schema';
  return given({
    maxOutputTokens: maxTokens?.value ?? null,
    temperature,
    topP,
    seed,
    presencePenalty,
    frequencyPenalty,
    stopSequences: stop.length === 0 ? null : stop.slice(0, MAX_STOPS),
    responseMimeType: responseFormat === null ? null : 'application/json',
    // `responseJsonSchema` gives wrong answers in batches.
    responseSchema:
      responseFormat?.kind === 'json_schema' ? schemaOf(responseFormat.schema, path, scope) : null,
  });
}

function toolsOf(request: ChatRequest, scope: TranslationScope): Json {
  const { tools, toolChoice, parallelToolCalls } = request;
  if (tools.length === 0) {
    const isForced = toolChoice?.kind === 'required' || toolChoice?.kind === 'tool';
    return isForced ? scope.refuse('tool_choice', 'there are no tools') : {};
  }
  if (parallelToolCalls === false) {
    scope.drop('parallel_tool_calls', 'the provider may make several calls at once');
  }
  const functionDeclarations = tools.map((tool) => declarationOf(tool, scope));
  const choice = toolChoice === null ? {} : { functionCallingConfig: callingConfigOf(toolChoice) };
  return {
    tools: [{ functionDeclarations }],
    ...(toolChoice === null ? {} : { toolConfig: choice }),
  };
}

function declarationOf(tool: ChatTool, scope: TranslationScope): Json {
  const { name, description, parameters, isStrict, path } = tool;
  // A strict function is a promise about the answer that Google does not give.
  if (isStrict) scope.drop(`${path}.function.strict`, 'the provider has no strict functions');
  return given({ name, description, parameters: parametersOf(parameters, path, scope) });
}

/** Google refuses an object without properties; a function without parameters has none. */
function parametersOf(parameters: Json | null, path: string, scope: TranslationScope): Json | null {
  if (parameters === null) return null;
  const schema = schemaOf(parameters, `${path}.function.parameters`, scope);
  return schema['properties'] === undefined && schema['type'] === 'OBJECT' ? null : schema;
}

function callingConfigOf(choice: ToolChoice): Json {
  if (choice.kind === 'tool') return { mode: 'ANY', allowedFunctionNames: [choice.name] };
  return { mode: MODES[choice.kind] };
}

/** The members that are not null. */
function given(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}
