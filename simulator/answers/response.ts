import { promptText, promptTokens } from '../prompt';
import { invalid, type ModelRequest } from '../request';
import type { SimulatorSettings } from '../settings';
import type { Generation } from './generation';
import { createdOf, hexOf, outputOf, textOf } from './output';

/** Answers `/v1/responses`. */
export function response(request: ModelRequest, settings: SimulatorSettings): Generation {
  const { input, instructions, max_output_tokens } = request.body;
  if (input === undefined || input === null) throw invalid('input', 'input is required');
  const output = outputOf(request, settings, max_output_tokens);
  const prompt = promptTokens(input, instructions);
  const complete = output.finish === 'stop';
  const status = complete ? 'completed' : 'incomplete';
  const id = hexOf(request.seed);
  return {
    promptTokens: prompt.total,
    promptText: () => promptText(input, instructions),
    estimatedCachedTokens: prompt.cached,
    outputTokens: output.tokens,
    finish: output.finish,
    stream: null,
    body: (cached) => {
      const content = [{ type: 'output_text', text: textOf(output), annotations: [] }];
      return {
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
          input_tokens_details: { cached_tokens: cached },
          output_tokens: output.tokens,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: prompt.total + output.tokens,
        },
      };
    },
  };
}
