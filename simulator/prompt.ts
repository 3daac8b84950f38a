import { fnv32a } from '../core/names/fnv';
import { isJsonObject } from '../core/openai/json-object';
import { BLOCK_TOKENS } from './engine/prefix-cache';
import { tokensOf } from './words';

/** Tokens of a prompt, and how many of them a prefix cache would hold. */
export interface PromptTokens {
  readonly total: number;
  /** Complete blocks of the system prompt: an estimate for answers without an engine. */
  readonly cached: number;
}

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

/**
 * Everything that the engine computes before it answers, as one text that begins with the system prompt.
 * Two prompts share cached blocks as far as their texts agree. An image or a file counts as a hash of
 * it, and a token id as four characters, the length of one token.
 */
export function promptText(messages: unknown, instructions?: unknown): string {
  const leading = typeof instructions === 'string' ? `\0instructions\0${instructions}` : '';
  if (!Array.isArray(messages)) return leading + contentText(messages);
  return messages.reduce<string>((text, message) => {
    if (!isJsonObject(message)) return text + contentText(message);
    const role = typeof message['role'] === 'string' ? message['role'] : '';
    return `${text}\0${role}\0${contentText(message['content'])}`;
  }, leading);
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(contentText).join('');
  if (typeof content === 'number') return content.toString(36).padStart(4, '0').slice(-4);
  if (isJsonObject(content) && typeof content['text'] === 'string') return content['text'];
  const json = JSON.stringify(content ?? null);
  return `\0${fnv32a(Buffer.from(json)).toString(16)}`;
}

function withCache(total: number, system: number): PromptTokens {
  return { total, cached: Math.floor(system / BLOCK_TOKENS) * BLOCK_TOKENS };
}
