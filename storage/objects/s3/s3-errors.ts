import { NightshiftError } from '../../../core/errors';
import type { S3Bucket } from './s3-bucket';

/** What an error of the SDK or of a connection may have. Errors of HEAD requests have no code of S3. */
interface Fault {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
  readonly Region?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
}

/** Whether a request failed with one of these codes of S3. */
export function hasName(error: unknown, ...names: readonly string[]): boolean {
  return names.includes(faultOf(error).name ?? '');
}

/** The HTTP status of a failed request; null if there was no answer. */
export function statusOf(error: unknown): number | null {
  return faultOf(error).$metadata?.httpStatusCode ?? null;
}

/**
 * `object_store_failed`, which is retryable, with what happened and what to do; a NightshiftError stays as
 * it is. Never `object_missing`: only those who looked up a key know that.
 */
export function s3Error(error: unknown, action: string, bucket: S3Bucket): NightshiftError {
  if (error instanceof NightshiftError) return error;
  const fault = faultOf(error);
  const status = statusOf(error);
  const name = fault.code ?? fault.name ?? 'Error';
  const what = adviceFor(fault, bucket) ?? `${fault.message ?? 'no message'}.`;
  const message = `${action}: ${what} (${name}${status === null ? '' : `, HTTP ${status}`})`;
  return new NightshiftError('object_store_failed', message, { cause: error });
}

/** Runs a request with its errors mapped by {@link s3Error}. */
export async function mapped<T>(
  action: string,
  bucket: S3Bucket,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw s3Error(error, action, bucket);
  }
}

/** `object_missing`. Only for a key that S3 itself reports as missing from a bucket that is there. */
export function missingObject(key: string, cause?: unknown): NightshiftError {
  return new NightshiftError('object_missing', `there is no object ${key}`, { cause });
}

function faultOf(error: unknown): Fault {
  return typeof error === 'object' && error !== null ? error : {};
}

type Advice = (bucket: S3Bucket, fault: Fault) => string;

const noBucket: Advice = ({ name, place }) =>
  `There is no bucket ${name} at ${place}. Create it, or set object_store.bucket.`;
const denied: Advice = ({ name }) =>
  `The credentials lack a right on bucket ${name}. Grant those of docs/configuration.md#s3, and the use of the KMS key if there is one.`;
const badKey: Advice = () =>
  'The access key is unknown or does not fit its secret. Check object_store.access_key_id and secret_access_key_file, or the credentials of the AWS environment.';
const expired: Advice = () => 'The credentials have expired. Renew them.';
const noCredentials: Advice = () =>
  'Found no credentials. Set object_store.access_key_id and secret_access_key_file, or give this process credentials of the AWS environment.';
const clockSkew: Advice = () =>
  'The clock of this host differs by minutes from that of the store. Correct the clock.';
const wrongRegion: Advice = ({ name }, fault) => {
  const region = fault.Region ?? fault.$response?.headers?.['x-amz-bucket-region'] ?? '';
  const other = region === '' ? 'another region' : `region ${region}`;
  return `Bucket ${name} is in ${other}. Set object_store.region${region === '' ? '' : ` to ${region}`}.`;
};
const overloaded: Advice = () => 'The store asks for fewer requests. They are sent again later.';
const archived: Advice = () =>
  'The object was archived. Restore it, and exclude the prefix from rules that archive objects.';
const notImplemented: Advice = ({ place }) =>
  `${place} does not support this kind of request. Run nightshift doctor to see what the store must support.`;
const badName: Advice = ({ place }) =>
  `No host of that name was found for ${place}. Check object_store.endpoint, object_store.region and the DNS of this host.`;
const refused: Advice = ({ place }) =>
  `No connection to ${place}. Check that the store runs and object_store.endpoint is right.`;
const badCertificate: Advice = ({ place }) =>
  `The certificate of ${place} is not trusted. Check object_store.endpoint, or name its certificate authority in NODE_EXTRA_CA_CERTS.`;
const slow: Advice = ({ place, timeoutMs }) =>
  `${place} did not answer within ${timeoutMs / 1_000} s. Check that it runs, or raise object_store.request_timeout.`;

const noService: Advice = ({ name, place }) =>
  `${place} is no S3 service, or has no bucket ${name}. Check object_store.endpoint, bucket and use_path_style.`;
const invalid: Advice = ({ name, place }) =>
  `${place} refused the request as invalid. Check that ${name} is the name of a bucket, and object_store.region.`;

const BY_NAME: Readonly<Record<string, Advice>> = {
  NoSuchBucket: noBucket,
  InvalidBucketName: invalid,
  AccessDenied: denied,
  AllAccessDisabled: denied,
  InvalidAccessKeyId: badKey,
  SignatureDoesNotMatch: badKey,
  XAdminUserNotFound: badKey,
  InvalidToken: badKey,
  ExpiredToken: expired,
  ExpiredTokenException: expired,
  CredentialsProviderError: noCredentials,
  RequestTimeTooSkewed: clockSkew,
  PermanentRedirect: wrongRegion,
  TemporaryRedirect: wrongRegion,
  AuthorizationHeaderMalformed: wrongRegion,
  SlowDown: overloaded,
  InvalidObjectState: archived,
  NotImplemented: notImplemented,
  ENOTFOUND: badName,
  EAI_AGAIN: badName,
  ECONNREFUSED: refused,
  EHOSTUNREACH: refused,
  ENETUNREACH: refused,
  TimeoutError: slow,
};
/** For answers without a code, such as those to HEAD, and for codes that are not listed above. */
const BY_STATUS: Readonly<Record<number, Advice>> = {
  301: wrongRegion,
  307: wrongRegion,
  403: denied,
  501: notImplemented,
  503: overloaded,
};
/** For answers without a code only: with one, the text of the store says more. */
const BY_STATUS_ALONE: Readonly<Record<number, Advice>> = {
  400: invalid,
  404: noService,
  405: noService,
};
/** What the SDK calls an error that has no code of S3. */
const NO_CODE = /^(?:Unknown(?:Error)?|NotFound|BadRequest|MethodNotAllowed|\d+)$/;
const CERTIFICATE_FAULT = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL/;

function adviceFor(fault: Fault, bucket: S3Bucket): string | null {
  const { code, name = '', $metadata } = fault;
  const status = $metadata?.httpStatusCode ?? 0;
  const advice =
    BY_NAME[code ?? ''] ??
    BY_NAME[name] ??
    BY_STATUS[status] ??
    (NO_CODE.test(name) ? BY_STATUS_ALONE[status] : null) ??
    (CERTIFICATE_FAULT.test(code ?? '') ? badCertificate : null);
  return advice === null ? null : advice(bucket, fault);
}
