import { isJsonObject } from '../../core/openai/json-object';
import type { Json } from '../chat/values';

/**
 * Sets the members of `extra` in a request. Objects are merged, because the settings of a model are nested:
 * `generationConfig.thinkingConfig` must not replace the rest of `generationConfig`.
 */
export function withExtraBody(request: Json, extra: Json): Json {
  const merged: Record<string, unknown> = { ...request };
  for (const [name, value] of Object.entries(extra)) {
    const own = Object.hasOwn(merged, name) ? merged[name] : undefined;
    merged[name] = isJsonObject(own) && isJsonObject(value) ? withExtraBody(own, value) : value;
  }
  return merged;
}
