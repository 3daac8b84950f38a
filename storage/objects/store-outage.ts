import { isNightshiftError } from '../../core/errors';

/** What errors of AWS's SDK and of the operating system may have. */
interface Cause {
  readonly name?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** Of the file system: somebody must change a right or a path. */
const WRONG_PATH: readonly string[] = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'];
const WRONG_CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL/;
const MAY_PASS: readonly number[] = [408, 429];
const NOT_IMPLEMENTED = 501;

/**
 * Whether the store could not be reached, so that the same call may succeed later without a change of
 * settings or rights (docs/design/processes.md#errors-that-end-a-start).
 */
export function isStoreAway(error: unknown): boolean {
  if (!isNightshiftError(error, 'object_store_failed')) return false;
  const { name = '', code = '', $metadata } = (error.cause ?? {}) as Cause;
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) {
    return (status >= 500 && status !== NOT_IMPLEMENTED) || MAY_PASS.includes(status);
  }
  if (name === 'CredentialsProviderError') return false;
  return !WRONG_PATH.includes(code) && !WRONG_CERTIFICATE.test(code);
}
