import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { NightshiftError } from '../../core/errors';
import type { ApiKeyFile } from '../../platform/api-key-file';

/** The key of a service account, as Google's console writes it to a file. */
export interface ServiceAccount {
  readonly clientEmail: string;
  readonly privateKey: KeyObject;
  readonly privateKeyId: string;
  /** Where access tokens are issued. */
  readonly tokenUri: string;
  /** The private key as the file has it, with and without escaped line ends, to be masked in texts. */
  readonly secrets: readonly string[];
}

const file = z.object({
  type: z.literal('service_account'),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().default(''),
  token_uri: z.url({ protocol: /^https?$/ }).default('https://oauth2.googleapis.com/token'),
});

/** The text of the file. @throws config_invalid if it cannot be read */
export function readCredentials({ path, setting }: ApiKeyFile): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new NightshiftError('config_invalid', `${setting}: cannot read ${path} (${code})`);
  }
}

/** The service account in a text. @throws config_invalid if there is none; the message quotes nothing of it */
export function parseServiceAccount(text: string, { path, setting }: ApiKeyFile): ServiceAccount {
  const parsed = file.safeParse(jsonOf(text));
  const member = parsed.success ? 'private_key' : parsed.error.issues[0]?.path.join('.');
  const key = parsed.success ? privateKeyOf(parsed.data.private_key) : null;
  if (!parsed.success || key === null) {
    const at = member === undefined || member === '' ? '' : ` (see its member ${member})`;
    const message = `${setting}: ${path} must contain the JSON key of a service account${at}`;
    throw new NightshiftError('config_invalid', message);
  }
  const { client_email, private_key, private_key_id, token_uri } = parsed.data;
  return {
    clientEmail: client_email,
    privateKey: key,
    privateKeyId: private_key_id,
    tokenUri: token_uri,
    secrets: [private_key, JSON.stringify(private_key).slice(1, -1)],
  };
}

function privateKeyOf(pem: string): KeyObject | null {
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyType === 'rsa' ? key : null;
  } catch {
    return null;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
