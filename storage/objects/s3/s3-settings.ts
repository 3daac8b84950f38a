import { readFileSync } from 'node:fs';
import { NightshiftError } from '../../../core/errors';
import type { Config } from '../../../platform/config-schema';
import type { S3StoreOptions } from './s3-bucket';

type S3Settings = Extract<Config['object_store'], { type: 's3' }>;

/**
 * The options that the settings below `object_store` stand for. Reads the secret access key.
 * @throws config_invalid if its file cannot be read or is empty
 */
export function s3OptionsOf(settings: S3Settings): S3StoreOptions {
  const { bucket, region, endpoint, prefix, server_side_encryption: encryption } = settings;
  const { kms_key_id: kmsKeyId, access_key_id: accessKeyId } = settings;
  const { secret_access_key_file: secretFile } = settings;
  return {
    bucket,
    prefix,
    usePathStyle: settings.use_path_style,
    requestTimeoutMs: settings.request_timeout,
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(encryption === undefined ? {} : { encryption }),
    ...(kmsKeyId === undefined ? {} : { kmsKeyId }),
    ...(accessKeyId === undefined || secretFile === undefined
      ? {}
      : { credentials: { accessKeyId, secretAccessKey: readSecret(secretFile) } }),
  };
}

function readSecret(file: string): string {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret !== '') return secret;
  } catch (cause) {
    const message = `object_store.secret_access_key_file: cannot read ${file}: ${(cause as Error).message}`;
    throw new NightshiftError('config_invalid', message, { cause });
  }
  const message = `object_store.secret_access_key_file: ${file} is empty. Write the secret access key into it.`;
  throw new NightshiftError('config_invalid', message);
}
