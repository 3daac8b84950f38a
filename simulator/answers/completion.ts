import { inputTokens, promptText } from '../prompt';
import { invalid, type ModelRequest } from '../request';
import type { SimulatorSettings } from '../settings';
import type { FinishReason, Generation } from './generation';
import { createdOf, hexOf, isListOfText, outputOf, textOf } from './output';
import { usageOf } from './usage';

/** Answers `/v1/completions`, with one choice per prompt. */
export function completion(request: ModelRequest, settings: SimulatorSettings): Generation {
  const { prompt, max_tokens } = request.body;
  if (prompt === undefined || prompt === null) throw invalid('prompt', 'prompt is required');
  const prompts: readonly unknown[] = isListOfText(prompt) ? prompt : [prompt];
  const outputs = prompts.map((_, index) => {
    return outputOf({ ...request, seed: request.seed + index }, settings, max_tokens);
  });
  const outputTokens = outputs.reduce((sum, { tokens }) => sum + tokens, 0);
  const tokens = inputTokens(prompt);
  const usage = (cached: number): unknown => usageOf(tokens, cached, outputTokens);
  const head = {
    id: `cmpl-${hexOf(request.seed)}`,
    object: 'text_completion',
    created: createdOf(request.seed),
    model: request.model,
  };
  const choice = (index: number, text: string, finish: FinishReason | null): unknown => {
    return { index, text, logprobs: null, finish_reason: finish };
  };
  return {
    promptTokens: tokens,
    promptText: () => promptText(prompt),
    estimatedCachedTokens: 0,
    outputTokens,
    finish: outputs.every(({ finish }) => finish === 'stop') ? 'stop' : 'length',
    body: (cached) => {
      const choices = outputs.map((one, index) => choice(index, textOf(one), one.finish));
      return { ...head, choices, usage: usage(cached) };
    },
    stream: () => ({ head, outputs, opening: null, choice, usage }),
  };
}
