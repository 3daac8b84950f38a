import { inputTokens, promptTokens, type PromptTokens } from './prompt';
import { invalid, type ModelRequest } from './request';
import type { SimulatorSettings } from './settings';
import { hashOf, nextNumber, wordsFrom } from './words';

/** The body of an answer, and the tokens it reports. */
export interface ModelAnswer {
  readonly body: Record<string, unknown>;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

type AnswerBuilder = (request: ModelRequest, settings: SimulatorSettings) => ModelAnswer;

/** Builds the answer of each model endpoint. Equal requests and settings give equal answers. */
export const ANSWER_BUILDERS: ReadonlyMap<string, AnswerBuilder> = new Map([
  ['/v1/chat/completions', chatCompletion],
  ['/v1/completions', completion],
  ['/v1/embeddings', embedding],
  ['/v1/responses', response],
  ['/v1/moderations', moderation],
]);

function chatCompletion(request: ModelRequest, settings: SimulatorSettings): ModelAnswer {
  const { messages, max_completion_tokens, max_tokens } = request.body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalid('messages', 'messages must be a list of at least one message');
  }
  const output = outputOf(request, settings, max_completion_tokens ?? max_tokens);
  const message = { role: 'assistant', content: output.text, refusal: null };
  return textAnswer(promptTokens(messages), output.tokens, {
    id: `chatcmpl-${hexOf(request.seed)}`,
    object: 'chat.completion',
    created: createdOf(request.seed),
    model: request.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: output.finish }],
  });
}

function completion(request: ModelRequest, settings: SimulatorSettings): ModelAnswer {
  const { prompt, max_tokens } = request.body;
  if (prompt === undefined || prompt === null) throw invalid('prompt', 'prompt is required');
  const prompts = isListOf(prompt, 'string') ? prompt : [prompt];
  const outputs = prompts.map((_, index) => {
    return outputOf({ ...request, seed: request.seed + index }, settings, max_tokens);
  });
  const tokens = outputs.reduce((sum, output) => sum + output.tokens, 0);
  return textAnswer({ total: inputTokens(prompt), cached: 0 }, tokens, {
    id: `cmpl-${hexOf(request.seed)}`,
    object: 'text_completion',
    created: createdOf(request.seed),
    model: request.model,
    choices: outputs.map(({ text, finish }, index) => {
      return { index, text, logprobs: null, finish_reason: finish };
    }),
  });
}

function response(request: ModelRequest, settings: SimulatorSettings): ModelAnswer {
  const { input, instructions, max_output_tokens } = request.body;
  if (input === undefined || input === null) throw invalid('input', 'input is required');
  const output = outputOf(request, settings, max_output_tokens);
  const prompt = promptTokens(input, instructions);
  const complete = output.finish === 'stop';
  const status = complete ? 'completed' : 'incomplete';
  const content = [{ type: 'output_text', text: output.text, annotations: [] }];
  const id = hexOf(request.seed);
  return {
    inputTokens: prompt.total,
    outputTokens: output.tokens,
    body: {
      id: `resp_${id}`,
      object: 'response',
      created_at: createdOf(request.seed),
      status,
      error: null,
      incomplete_details: complete ? null : { reason: 'max_output_tokens' },
      model: request.model,
      output: [{ type: 'message', id: `msg_${id}`, status, role: 'assistant', content }],
      usage: {
        input_tokens: prompt.total,
        input_tokens_details: { cached_tokens: prompt.cached },
        output_tokens: output.tokens,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: prompt.total + output.tokens,
      },
    },
  };
}

function embedding(request: ModelRequest, settings: SimulatorSettings): ModelAnswer {
  const { input, dimensions, encoding_format: format } = request.body;
  if (input === undefined || input === null) throw invalid('input', 'input is required');
  const many = Array.isArray(input) && typeof input[0] !== 'number';
  const items: readonly unknown[] = many ? input : [input];
  const length = positiveOr(dimensions, settings.embeddingDimensions);
  const tokens = inputTokens(input);
  return {
    inputTokens: tokens,
    outputTokens: 0,
    body: {
      object: 'list',
      data: items.map((item, index) => {
        const vector = vectorOf(item, length);
        const shown = format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : null;
        return { object: 'embedding', index, embedding: shown ?? Array.from(vector) };
      }),
      model: request.model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    },
  };
}

const MODERATION_CATEGORIES = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
];

/** Flags nothing. The scores are small and depend only on the text. */
function moderation(request: ModelRequest): ModelAnswer {
  const { input } = request.body;
  if (input === undefined || input === null) throw invalid('input', 'input is required');
  const items: readonly unknown[] = isListOf(input, 'string') ? input : [input];
  const results = items.map((item) => {
    let state = hashOf(Buffer.from(JSON.stringify(item)));
    const score = (): number => (state = nextNumber(state)) / 2 ** 32 / 100;
    return {
      flagged: false,
      categories: Object.fromEntries(MODERATION_CATEGORIES.map((name) => [name, false])),
      category_scores: Object.fromEntries(MODERATION_CATEGORIES.map((name) => [name, score()])),
    };
  });
  const body = { id: `modr-${hexOf(request.seed)}`, model: request.model, results };
  return { body, inputTokens: 0, outputTokens: 0 };
}

function textAnswer(
  prompt: PromptTokens,
  outputTokens: number,
  body: Record<string, unknown>,
): ModelAnswer {
  const usage = {
    prompt_tokens: prompt.total,
    completion_tokens: outputTokens,
    total_tokens: prompt.total + outputTokens,
    prompt_tokens_details: { cached_tokens: prompt.cached },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
  return { inputTokens: prompt.total, outputTokens, body: { ...body, usage } };
}

function outputOf(
  { seed }: ModelRequest,
  { outputTokens }: SimulatorSettings,
  limit: unknown,
): { text: string; tokens: number; finish: 'stop' | 'length' } {
  const tokens = Math.min(outputTokens, positiveOr(limit, outputTokens));
  const finish = tokens < outputTokens ? 'length' : 'stop';
  return { text: wordsFrom(seed, tokens), tokens, finish };
}

/** A vector of length 1 that depends only on the item. */
function vectorOf(item: unknown, length: number): Float32Array {
  let state = hashOf(Buffer.from(JSON.stringify(item)));
  const vector = new Float32Array(length);
  let square = 0;
  for (let i = 0; i < length; i++) {
    state = nextNumber(state);
    const value = state / 2 ** 31 - 1;
    vector[i] = value;
    square += value * value;
  }
  const norm = Math.sqrt(square) || 1;
  return vector.map((value) => value / norm);
}

function positiveOr(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : fallback;
}

function isListOf(value: unknown, type: 'string'): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === type);
}

function hexOf(seed: number): string {
  return seed.toString(16).padStart(8, '0') + nextNumber(seed).toString(16).padStart(8, '0');
}

/** Depends on the request, not on the clock: equal requests get equal answers at any time. */
function createdOf(seed: number): number {
  return 1_735_689_600 + (seed % 86_400);
}
