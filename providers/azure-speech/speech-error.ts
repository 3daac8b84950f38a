import { isJsonObject } from '../../core/openai/json-object';
import type { ProviderError } from '../provider';

/**
 * The error of an answer without success. The service writes `{"code", "message"}`, the gateway before it
 * `{"error": {"code", "message"}}`. Null if the body is something else, so another server wrote it.
 */
export function readSpeechError(
  json: unknown,
): (ProviderError & { readonly isQuotaRefusal: boolean }) | null {
  if (!isJsonObject(json)) return null;
  const { code, message } = isJsonObject(json['error']) ? json['error'] : json;
  if (typeof code !== 'string' || typeof message !== 'string') return null;
  return { code, message, isQuotaRefusal: false };
}
