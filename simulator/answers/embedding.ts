import { fnv32a } from '../../core/names/fnv';
import { inputTokens, promptText } from '../prompt';
import { invalid, type ModelRequest } from '../request';
import type { SimulatorSettings } from '../settings';
import { nextNumber } from '../words';
import type { Generation } from './generation';
import { positiveOr } from './output';

/** Answers `/v1/embeddings`. */
export function embedding(request: ModelRequest, settings: SimulatorSettings): Generation {
  const { input, dimensions, encoding_format: format } = request.body;
  if (input === undefined || input === null) throw invalid('input', 'input is required');
  const many = Array.isArray(input) && typeof input[0] !== 'number';
  const items: readonly unknown[] = many ? input : [input];
  const length = positiveOr(dimensions, settings.embeddingDimensions);
  const tokens = inputTokens(input);
  return {
    promptTokens: tokens,
    promptText: () => promptText(input),
    estimatedCachedTokens: 0,
    outputTokens: 0,
    finish: 'stop',
    stream: null,
    body: () => ({
      object: 'list',
      data: items.map((item, index) => {
        const vector = vectorOf(item, length);
        const shown = format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : null;
        return { object: 'embedding', index, embedding: shown ?? Array.from(vector) };
      }),
      model: request.model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    }),
  };
}

/** A vector of length 1 that depends only on the item. */
function vectorOf(item: unknown, length: number): Float32Array {
  let state = fnv32a(Buffer.from(JSON.stringify(item)));
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
