import type { RuleBreak } from './config-rule';
import type { Config } from './config-schema';

type S3Settings = Extract<Config['object_store'], { type: 's3' }>;

/** Answers wait so long before they are durable; more would only make a crash dearer. */
const MAX_FLUSH_MS = 60_000;
const MIN_SEGMENT_BYTES = 64 * 1024;
/** One put of this size still fits into `request_timeout` on a slow line. */
const MAX_SEGMENT_BYTES = 64 * 1024 ** 2;

/** Rules between the settings below `object_store` (docs/design/configuration.md#rules-between-settings). */
export function objectStoreRules(settings: Config['object_store']): RuleBreak[] {
  if (settings.type !== 's3') return [];
  return rulesOf(settings).flatMap(([isBroken, key, message]) =>
    isBroken ? [{ path: ['object_store', key], message }] : [],
  );
}

type Rule = readonly [isBroken: boolean, key: string, message: string];

function rulesOf(settings: S3Settings): Rule[] {
  const { flush_interval: flushMs, segment_bytes: segmentBytes } = settings;
  return [
    ...credentialRules(settings),
    [
      settings.kms_key_id !== undefined && settings.server_side_encryption !== 'aws:kms',
      'kms_key_id',
      'is only used with server_side_encryption: aws:kms. Set that, or remove the key',
    ],
    [
      settings.prefix.split('/').some((name) => name === '.' || name === '..'),
      'prefix',
      'must not contain . or .. as a name',
    ],
    [settings.request_timeout === 0, 'request_timeout', 'must be longer than 0'],
    [
      flushMs === 0 || flushMs > MAX_FLUSH_MS,
      'flush_interval',
      'must be longer than 0 and at most 60s: a crash costs the answers of this time',
    ],
    [
      segmentBytes < MIN_SEGMENT_BYTES || segmentBytes > MAX_SEGMENT_BYTES,
      'segment_bytes',
      'must be between 64KiB and 64MiB',
    ],
  ];
}

function credentialRules(settings: S3Settings): Rule[] {
  const { endpoint, access_key_id: id, secret_access_key_file: file } = settings;
  const {
    username = '',
    password = '',
    search = '',
  } = endpoint === undefined ? {} : new URL(endpoint);
  return [
    [
      username !== '' || password !== '' || search !== '',
      'endpoint',
      'must not contain a user, a password or a query: set access_key_id and secret_access_key_file',
    ],
    [
      (id === undefined) !== (file === undefined),
      id === undefined ? 'access_key_id' : 'secret_access_key_file',
      'access_key_id and secret_access_key_file belong together: set both, or neither to use the credentials of the AWS environment',
    ],
  ];
}
