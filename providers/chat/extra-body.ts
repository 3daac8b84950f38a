import { isJsonObject } from '../../core/openai/json-object';
import type { Json } from './values';

/**
 * Sets the members of `extra` in a translated request. Objects are merged, because vendors nest the settings of a
 * model: `output_config.effort` must not replace the rest of `output_config`.
 */
export function withExtraBody(request: Json, extra: Json): Json {
  const merged = new Map(Object.entries(request));
  for (const [name, value] of Object.entries(extra)) {
    const own = merged.get(name);
    merged.set(name, isJsonObject(own) && isJsonObject(value) ? withExtraBody(own, value) : value);
  }
  return Object.fromEntries(merged);
}
