import { isJsonObject } from '../core/openai/json-object';
import { tokensOf } from './words';

/** Tokens of a prompt, and how many of them a prefix cache would hold. */
export interface PromptTokens {
  readonly total: number;
  /** Complete blocks of the system prompt. */
  readonly cached: number;
}

/** Tokens in one block of the simulated prefix cache. */
const BLOCK_TOKENS = 16;

/** Counts chat messages, or `instructions` and input items of a response. */
export function promptTokens(messages: unknown, instructions?: unknown): PromptTokens {
  const leading = typeof instructions === 'string' ? tokensOf(instructions) : 0;
  if (typeof messages === 'string') return withCache(leading + tokensOf(messages), leading);
  let total = leading;
  let system = leading;
  for (const message of Array.isArray(messages) ? messages : []) {
    if (!isJsonObject(message)) continue;
    const tokens = contentTokens(message['content']);
    total += tokens;
    const role = message['role'];
    if (role === 'system' || role === 'developer') system += tokens;
  }
  return withCache(total, system);
}

/** Tokens of a text, of a list of texts or token ids, or of lists of token ids. */
export function inputTokens(input: unknown): number {
  if (typeof input === 'string') return tokensOf(input);
  if (typeof input === 'number') return 1;
  if (isJsonObject(input)) return contentTokens([input]);
  return Array.isArray(input) ? input.reduce<number>((sum, item) => sum + inputTokens(item), 0) : 0;
}

/** Counts text; images, audio and files count 0. */
function contentTokens(content: unknown): number {
  if (typeof content === 'string') return tokensOf(content);
  if (!Array.isArray(content)) return 0;
  let total = 0;
  for (const item of content) {
    if (isJsonObject(item) && typeof item['text'] === 'string') total += tokensOf(item['text']);
  }
  return total;
}

function withCache(total: number, system: number): PromptTokens {
  return { total, cached: Math.floor(system / BLOCK_TOKENS) * BLOCK_TOKENS };
}
