import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { NightshiftError } from '../core/errors';

/** A file with one API key. */
export interface ApiKeyFile {
  readonly path: string;
  /** The setting that names it, for messages. */
  readonly setting: string;
}

/** The settings that name a file with a key (docs/design/configuration.md#gateway-keys). */
export interface ApiKeySettings {
  /** Name of a file in `secrets_dir`. */
  readonly api_key_name?: string | undefined;
  /** A path. */
  readonly api_key_file?: string | undefined;
}

/**
 * The file with the key of `owner`, such as `gateway https://models`; null if it has none.
 * @throws config_invalid if both settings are set, or the name has a folder
 */
export function apiKeyFile(
  { api_key_name: name, api_key_file: file }: ApiKeySettings,
  secretsDir: string,
  owner: string,
): ApiKeyFile | null {
  if (name !== undefined && file !== undefined) {
    throw invalid(`${owner}: set only one of api_key_name and api_key_file`);
  }
  if (name === undefined)
    return file === undefined ? null : { path: file, setting: 'api_key_file' };
  if (basename(name) === name) return { path: join(secretsDir, name), setting: 'api_key_name' };
  throw invalid(
    `${owner}: api_key_name must be a file name without a folder, got "${name}"; use api_key_file for a path`,
  );
}

/**
 * The key in a file, without white space around it.
 * @throws config_invalid if the file cannot be read or does not hold exactly one key
 */
export function readApiKey({ path, setting }: ApiKeyFile): string {
  const key = readText(path, setting).trim();
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw invalid(
    `${setting}: ${path} must contain exactly one key, in printable ASCII characters without spaces`,
  );
}

function readText(path: string, setting: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw invalid(`${setting}: cannot read ${path} (${code})`, cause);
  }
}

function invalid(message: string, cause?: unknown): NightshiftError {
  return new NightshiftError('config_invalid', message, { cause });
}
