import { isJsonObject } from '../../core/openai/json-object';
import type { InputState } from '../provider';
import { textOf } from './error-object';

/**
 * States that processing does not change any more. A create with a file that failed, or is deleted, is refused in
 * the provider's own words, which say more than the state.
 */
const FINAL_STATES: ReadonlySet<string> = new Set(['processed', 'error', 'deleting', 'deleted']);

/**
 * What a file object says about its processing; null if it is none. OpenAI has deprecated the member `status`, so a
 * file without one is ready.
 */
export function readInputState(json: unknown): InputState | null {
  if (!isJsonObject(json) || textOf(json['id']) === null) return null;
  const word = textOf(json['status']);
  return word === null || FINAL_STATES.has(word.toLowerCase()) ? 'ready' : 'processing';
}
