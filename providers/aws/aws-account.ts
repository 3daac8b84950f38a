import { NightshiftError } from '../../core/errors';
import type { ApiKeyFile } from '../../platform/api-key-file';
import { openCredential, type Credential } from '../credential';

/** Credentials for the clients of AWS's SDK. */
export interface AwsCredentials {
  /** Members of a client's configuration; empty for the SDK's own chain. */
  readonly config: {
    readonly credentials?: () => Promise<AwsKeyPair & { readonly expiration: Date }>;
  };
  /** A text without secrets. */
  mask(text: string): string;
}

/** An access key. */
export interface AwsKeyPair {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/**
 * Opens the credentials of an account at AWS. A file holds `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, because both
 * halves of a pair rotate together; it is read for each call (docs/design/providers.md#credentials). Without a
 * file the SDK looks in the environment, shared files, web identity, container and instance, and renews what it
 * finds.
 * @throws config_invalid if the file cannot be read or does not hold exactly one pair
 */
export function openAwsCredentials(file: ApiKeyFile | null): AwsCredentials {
  if (file === null) return { config: {}, mask: (text) => text };
  const credential = openCredential(file);
  const secrets = new Set<string>();
  const current = (): AwsKeyPair => {
    const pair = keyPair(credential, file);
    secrets.add(pair.secretAccessKey);
    return pair;
  };
  current();
  return {
    // The SDK keeps credentials until shortly before they expire. These are asked for at each call.
    config: { credentials: async () => ({ ...current(), expiration: new Date() }) },
    mask: (text) => [...secrets].reduce((masked, key) => masked.replaceAll(key, '***'), text),
  };
}

function keyPair(credential: Credential, { path, setting }: ApiKeyFile): AwsKeyPair {
  const [accessKeyId = '', secretAccessKey = '', ...rest] = credential.current().split(':');
  if (accessKeyId !== '' && secretAccessKey !== '' && rest.length === 0) {
    return { accessKeyId, secretAccessKey };
  }
  const message = `${setting}: ${path} must contain ACCESS_KEY_ID:SECRET_ACCESS_KEY`;
  throw new NightshiftError('config_invalid', message);
}
