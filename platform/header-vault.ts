import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NightshiftError } from '../core/errors';
import type { Config } from './config-schema';

/** Headers by lower-case name. */
export type Headers = Readonly<Record<string, string>>;

/** Encrypted headers, as they are stored. */
export interface SealedHeaders {
  /** First 8 hex digits of the key's SHA-256. */
  readonly keyId: string;
  /** 12 bytes nonce, ciphertext, 16 bytes tag. */
  readonly sealed: Buffer;
}

/**
 * Encrypts and decrypts the pass-through headers of a batch: AES-256-GCM with the batch's id as
 * associated data, so that the headers of one batch cannot be attached to another one
 * (docs/design/read-model.md#sealed-headers).
 */
export interface HeaderVault {
  seal(batchId: string, headers: Headers): SealedHeaders;
  /** @throws unavailable if the key is missing or wrong: another worker may have it */
  open(batchId: string, sealed: SealedHeaders): Headers;
}

type VaultConfig = Pick<Config, 'pass_through_headers' | 'pass_through_key_file' | 'secrets_dir'>;

const KEY_NAME = 'pass_through_key';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';
const HOW_TO = 'generate one with: openssl rand -hex 32';

/**
 * The vault with the keys of `pass_through_key_file`, or of the file `pass_through_key` in
 * `secrets_dir`: 64 hex digits per line. The first key encrypts, all of them decrypt, so that keys can
 * be rotated.
 *
 * @throws config_invalid if headers are configured and the key is missing or malformed
 */
export function openHeaderVault(config: VaultConfig): HeaderVault {
  const keys = readKeys(config);
  const [first] = keys;
  if (first === undefined && config.pass_through_headers.length > 0) {
    throw new NightshiftError(
      'config_invalid',
      `pass_through_headers needs a key: set pass_through_key_file, or put it into ${join(config.secrets_dir, KEY_NAME)}; ${HOW_TO}`,
    );
  }
  return {
    seal: (batchId, headers) => {
      if (first === undefined)
        throw new NightshiftError('internal', 'no key to encrypt headers with');
      return seal(first, { batchId, headers });
    },
    open: (batchId, { keyId, sealed }) => {
      const key = keys.find(({ id }) => id === keyId);
      if (key === undefined) throw noKey(keyId, batchId);
      return open(key, { batchId, sealed });
    },
  };
}

/** Creates a key file that only its owner may read, unless it exists. */
export function ensureKeyFile(path: string): void {
  if (existsSync(path)) return;
  writeFileSync(path, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
  chmodSync(path, 0o600);
}

interface VaultKey {
  readonly id: string;
  readonly bytes: Buffer;
}

function readKeys({ pass_through_key_file: file, secrets_dir }: VaultConfig): VaultKey[] {
  const path = file ?? join(secrets_dir, KEY_NAME);
  if (file === undefined && !existsSync(path)) return [];
  const lines = readText(path)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (lines.length === 0 || !lines.every((line) => /^[0-9a-f]{64}$/i.test(line))) {
    const message = `pass_through_key_file: ${path} must contain keys of 64 hex digits, one per line; ${HOW_TO}`;
    throw new NightshiftError('config_invalid', message);
  }
  return lines.map((line) => {
    const bytes = Buffer.from(line, 'hex');
    return { id: createHash('sha256').update(bytes).digest('hex').slice(0, 8), bytes };
  });
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    const message = `pass_through_key_file: cannot read ${path} (${code})`;
    throw new NightshiftError('config_invalid', message, { cause });
  }
}

function seal(
  key: VaultKey,
  { batchId, headers }: { batchId: string; headers: Headers },
): SealedHeaders {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.bytes, nonce).setAAD(Buffer.from(batchId));
  const text = cipher.update(JSON.stringify(headers), 'utf8');
  return {
    keyId: key.id,
    sealed: Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]),
  };
}

function open(key: VaultKey, { batchId, sealed }: { batchId: string; sealed: Buffer }): Headers {
  try {
    const nonce = sealed.subarray(0, NONCE_BYTES);
    const end = sealed.length - TAG_BYTES;
    const decipher = createDecipheriv(CIPHER, key.bytes, nonce)
      .setAAD(Buffer.from(batchId))
      .setAuthTag(sealed.subarray(end));
    const text = Buffer.concat([
      decipher.update(sealed.subarray(NONCE_BYTES, end)),
      decipher.final(),
    ]);
    return JSON.parse(text.toString('utf8')) as Headers;
  } catch {
    // Thrown without its cause, which could quote decrypted text.
    throw new NightshiftError('unavailable', `the headers of ${batchId} cannot be decrypted`);
  }
}

function noKey(keyId: string, batchId: string): NightshiftError {
  const message =
    `the headers of ${batchId} were encrypted with the key ${keyId}, which pass_through_key_file does ` +
    'not contain: add it back as another line and restart; the batch waits for it';
  return new NightshiftError('unavailable', message);
}
