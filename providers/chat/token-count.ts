import { isJsonObject } from '../../core/openai/json-object';

/** A number of tokens in an answer's usage; 0 if it states none, or something else than a whole number. */
export function tokenCount(usage: unknown, name: string): number {
  const value: unknown = isJsonObject(usage) ? usage[name] : 0;
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}
