import { readApiKey, type ApiKeyFile } from '../platform/api-key-file';

/** The key of one account. It never leaves this object but in the header of a request. */
export interface Credential {
  /**
   * The key as the file has it now. It is read for each call, so a rotated key counts at once, and a 401
   * needs no special case. While the file cannot be read, as in the middle of a rotation, the last key
   * counts.
   */
  current(): string;
  /** A text of the provider without the keys that this process has used. */
  mask(text: string): string;
}

/** Keys that are remembered for {@link Credential.mask}: a key rotates a few times in the life of a process. */
const MAX_MASKED = 16;
const MASK = '***';

/**
 * Opens the credential in a file (docs/design/providers.md#credentials).
 * @throws config_invalid if the file cannot be read or does not hold exactly one key
 */
export function openCredential(file: ApiKeyFile): Credential {
  const used = [readApiKey(file)];
  return {
    current: () => {
      const key = readOr(file, used.at(-1) ?? '');
      if (used.at(-1) !== key) used.push(key);
      if (used.length > MAX_MASKED) used.shift();
      return key;
    },
    mask: (text) => used.reduce((masked, key) => masked.replaceAll(key, MASK), text),
  };
}

function readOr(file: ApiKeyFile, last: string): string {
  try {
    return readApiKey(file);
  } catch {
    return last;
  }
}
