import { z } from 'zod';
import { replyTo } from '../../replies';
import type { SimulatorSettings } from '../../settings';
import { Traffic } from '../../traffic';

const part = z.looseObject({ text: z.string().optional() });
const content = z.strictObject({ role: z.string().optional(), parts: z.array(part) });
const object = z.record(z.string(), z.unknown());
const schema = z.strictObject({
  contents: z.array(content).min(1),
  systemInstruction: content.optional(),
  generationConfig: object.optional(),
  tools: z.array(object).optional(),
  toolConfig: object.optional(),
  safetySettings: z.array(object).optional(),
  cachedContent: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  simulate: z.unknown().optional(),
});
type Request = z.output<typeof schema>;

/** What a Google model answers to one request, and what it counts. */
export type GoogleReply =
  | {
      readonly kind: 'response';
      readonly response: Readonly<Record<string, unknown>>;
      readonly promptTokens: number;
      readonly cachedTokens: number;
      readonly outputTokens: number;
    }
  | { readonly kind: 'error'; readonly status: number; readonly message: string };

/**
 * Answers a `GenerateContentRequest` (https://ai.google.dev/api/generate-content) with the simulator's own answer to
 * the same messages as a chat completion. An unknown member is refused, as Google does; `simulate` asks for a fault.
 */
export function generateContent(
  request: unknown,
  model: string,
  settings: SimulatorSettings,
): GoogleReply {
  const parsed = schema.safeParse(request);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const at = issue?.path.join('.') ?? '';
    const message = `Invalid value at '${at}': ${issue?.message ?? 'invalid'}`;
    return { kind: 'error', status: 400, message };
  }
  const body = Buffer.from(JSON.stringify(chatBody(parsed.data, model)));
  // Limits of requests at once are for the model server.
  const unlimited = { ...settings, maxConcurrency: 0, notReady: false };
  const context = { settings: unlimited, traffic: new Traffic(), tries: 1 };
  const reply = replyTo('/v1/chat/completions', body, context);
  if (reply.generation === null) {
    const { drop, status } = reply;
    return drop
      ? { kind: 'error', status: 504, message: 'Deadline exceeded.' }
      : { kind: 'error', status, message: `The model answered with ${status}.` };
  }
  const {
    promptTokens,
    outputTokens,
    estimatedCachedTokens: cachedTokens,
    finish,
  } = reply.generation;
  const text = textOf(reply.generation.body(cachedTokens));
  const usage = { promptTokens, cachedTokens, outputTokens };
  return { kind: 'response', response: responseOf({ text, finish, model, ...usage }), ...usage };
}

function chatBody(request: Request, model: string): Readonly<Record<string, unknown>> {
  const { contents, systemInstruction, generationConfig = {}, simulate } = request;
  const system =
    systemInstruction === undefined
      ? []
      : [{ role: 'system', content: partsText(systemInstruction.parts) }];
  const messages = contents.map(({ role, parts }) => ({
    role: role === 'model' ? 'assistant' : 'user',
    content: partsText(parts),
  }));
  const limit = generationConfig['maxOutputTokens'];
  return {
    model,
    messages: [...system, ...messages],
    ...(limit === undefined ? {} : { max_completion_tokens: limit }),
    ...(simulate === undefined ? {} : { simulate }),
  };
}

function partsText(parts: Request['contents'][number]['parts']): string {
  return parts.map(({ text = '' }) => text).join('');
}

function textOf(body: Readonly<Record<string, unknown>>): string {
  const [choice] = body['choices'] as readonly { readonly message: { readonly content: string } }[];
  return choice?.message.content ?? '';
}

function responseOf(answer: {
  readonly text: string;
  readonly finish: 'stop' | 'length';
  readonly model: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}): Readonly<Record<string, unknown>> {
  const { text, finish, model, promptTokens, cachedTokens, outputTokens } = answer;
  return {
    candidates: [
      {
        content: { role: 'model', parts: [{ text }] },
        finishReason: finish === 'length' ? 'MAX_TOKENS' : 'STOP',
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: promptTokens,
      ...(cachedTokens === 0 ? {} : { cachedContentTokenCount: cachedTokens }),
      candidatesTokenCount: outputTokens,
      totalTokenCount: promptTokens + outputTokens,
    },
    modelVersion: model,
  };
}
