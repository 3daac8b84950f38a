import { NightshiftError } from '../../core/errors';
import { withoutTrailingSlashes } from '../../platform/http-client/base-url';

/** Where a gateway has its observability port by default. */
export const DEFAULT_OBSERVABILITY_URL = 'http://127.0.0.1:9091';

const TIMEOUT_MS = 3_000;

/** A page of the gateway's observability port. */
export interface AdminPage<T> {
  /** Base URL of the port. */
  readonly url: string;
  /** Such as `/admin/flow`. */
  readonly path: string;
  isPage(value: object): value is T & object;
}

/**
 * Reads a page of the gateway.
 *
 * @throws unavailable if nothing answers in 3 s, or with a 5xx; invalid_request if the server is no gateway
 */
export async function readAdminPage<T>(
  { url, path, isPage }: AdminPage<T>,
  signal?: AbortSignal,
): Promise<T> {
  if (!/^https?:/.test(URL.canParse(url) ? url : '')) {
    const message = `"${url}" is not a base URL: expected something like ${DEFAULT_OBSERVABILITY_URL}`;
    throw new NightshiftError('invalid_request', message);
  }
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const signals = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  let response: Response;
  let page: unknown;
  try {
    response = await fetch(`${withoutTrailingSlashes(url)}${path}`, { signal: signals });
    page = response.ok ? await response.json() : null;
  } catch (cause) {
    const message = `No gateway answers at ${url} (${causeOf(cause)}). Start one, or name its observability port with --url.`;
    throw new NightshiftError('unavailable', message, { cause });
  }
  if (typeof page === 'object' && page !== null && isPage(page)) return page;
  if (response.status >= 500) {
    throw new NightshiftError('unavailable', `${url} answers with status ${response.status}.`);
  }
  const message = `${url} has no ${path} (status ${response.status}), so it is no gateway. Name the gateway's observability port with --url.`;
  throw new NightshiftError('invalid_request', message);
}

/** `ECONNREFUSED` and the like: fetch hides it in the cause of its error. */
function causeOf(error: unknown): string {
  const { cause, message, name } = error as Error & { cause?: NodeJS.ErrnoException };
  if (name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1_000} s`;
  return cause?.code ?? cause?.message ?? message;
}
