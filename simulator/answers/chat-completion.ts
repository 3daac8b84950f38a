import { promptText, promptTokens } from '../prompt';
import { invalid, type ModelRequest } from '../request';
import type { SimulatorSettings } from '../settings';
import type { FinishReason, Generation } from './generation';
import { createdOf, hexOf, outputOf, textOf } from './output';
import { usageOf } from './usage';

/** Answers `/v1/chat/completions`. */
export function chatCompletion(request: ModelRequest, settings: SimulatorSettings): Generation {
  const { messages, max_completion_tokens, max_tokens } = request.body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalid('messages', 'messages must be a list of at least one message');
  }
  const output = outputOf(request, settings, max_completion_tokens ?? max_tokens);
  const prompt = promptTokens(messages);
  const usage = (cached: number): unknown => usageOf(prompt.total, cached, output.tokens);
  const head = (object: string): Record<string, unknown> => ({
    id: `chatcmpl-${hexOf(request.seed)}`,
    object,
    created: createdOf(request.seed),
    model: request.model,
  });
  return {
    promptTokens: prompt.total,
    promptText: () => promptText(messages),
    estimatedCachedTokens: prompt.cached,
    outputTokens: output.tokens,
    finish: output.finish,
    body: (cached) => {
      const message = { role: 'assistant', content: textOf(output), refusal: null };
      const choice = { index: 0, message, logprobs: null, finish_reason: output.finish };
      return { ...head('chat.completion'), choices: [choice], usage: usage(cached) };
    },
    stream: () => ({
      head: head('chat.completion.chunk'),
      outputs: [output],
      opening: (index) => deltaChoice(index, { role: 'assistant', content: '' }, null),
      choice: (index, content, finish) => deltaChoice(index, content ? { content } : {}, finish),
      usage,
    }),
  };
}

function deltaChoice(index: number, delta: unknown, finish: FinishReason | null): unknown {
  return { index, delta, logprobs: null, finish_reason: finish };
}
