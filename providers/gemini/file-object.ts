import { isJsonObject } from '../../core/openai/json-object';
import type { InputState } from '../provider';

/** The name of an uploaded file, such as `files/abc`; null if the answer has none. */
export function uploadedFileName(json: unknown): string | null {
  const file: unknown = isJsonObject(json) ? json['file'] : null;
  const name: unknown = isJsonObject(file) ? file['name'] : null;
  return typeof name === 'string' && name !== '' ? name : null;
}

/**
 * What a file says about its processing; null if it is no file. A file that failed is left to the create, whose
 * refusal says more.
 */
export function readFileState(json: unknown): InputState | null {
  if (!isJsonObject(json) || typeof json['name'] !== 'string') return null;
  return json['state'] === 'PROCESSING' ? 'processing' : 'ready';
}
