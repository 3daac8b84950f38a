import { types } from 'node:util';
import { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai';
import { NightshiftError, isNightshiftError, type ErrorCode } from '../../core/errors';
import { printable } from './human-format';

/** What the advice in an error message depends on. */
export interface FailureContext {
  readonly baseUrl: string;
  /** Whether there is a key. */
  readonly hasKey: boolean;
  /** Whether the user named the server. No key is sent to the default address. */
  readonly isNamedByUser: boolean;
}

/**
 * Translates an error of the SDK into one sentence with advice. The code `unavailable` marks errors worth a
 * retry: no connection, 408, 425, 429 and 5xx.
 */
export function explainFailure(error: unknown, context: FailureContext): NightshiftError {
  if (isNightshiftError(error)) return error;
  const { code, message } = describe(error, context);
  return new NightshiftError(code, message, { cause: error });
}

interface Described {
  readonly code: ErrorCode;
  readonly message: string;
}

function describe(error: unknown, context: FailureContext): Described {
  const { baseUrl } = context;
  const advice =
    'is it running (nightshift dev starts one here), and is the address right (--base-url, OPENAI_BASE_URL)?';
  if (error instanceof APIConnectionTimeoutError) {
    return { code: 'unavailable', message: `no answer in time from ${baseUrl}: ${advice}` };
  }
  if (error instanceof APIConnectionError) {
    const message = `cannot reach ${baseUrl} (${deepestReason(error)}): ${advice}`;
    return { code: 'unavailable', message };
  }
  if (error instanceof APIError && typeof error.status === 'number') {
    return describeStatus(error as APIError<number>, context);
  }
  // If the connection breaks in the middle of an answer, the SDK passes on fetch's own error.
  if (types.isNativeError(error) && error.name === 'TypeError' && 'cause' in error) {
    const message = `the connection to ${baseUrl} broke (${deepestReason(error)})`;
    return { code: 'unavailable', message };
  }
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}

function describeStatus(error: APIError<number>, context: FailureContext): Described {
  const { baseUrl } = context;
  const { status, requestID } = error;
  const said = messageOf(error);
  if (status === 401) {
    const what = context.hasKey ? 'refuses the API key' : 'requires an API key';
    return { code: 'unauthorized', message: `${baseUrl} ${what} (${said}): ${keyAdvice(context)}` };
  }
  if (status === 404) return { code: 'not_found', message: notFound(error, baseUrl) };
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const request = requestID ? `, request ${requestID}` : '';
    const message = `${baseUrl} answered ${status} (${said}${request}): try again later`;
    return { code: 'unavailable', message };
  }
  const code = status === 409 ? 'conflict' : status === 413 ? 'payload_too_large' : null;
  const param = error.param ? ` (${printable(error.param)})` : '';
  const message = `the server refused with ${status}${param}: ${said}`;
  return { code: code ?? 'invalid_request', message };
}

function keyAdvice({ baseUrl, hasKey, isNamedByUser }: FailureContext): string {
  if (hasKey) return 'is it the right one (OPENAI_API_KEY, --api-key)?';
  return isNamedByUser
    ? 'set OPENAI_API_KEY or --api-key'
    : `a key is only sent to a server that you name: set OPENAI_API_KEY and --base-url ${baseUrl}`;
}

/** A 404 without OpenAI's error body comes from a server that does not have this API. */
function notFound(error: APIError<number>, baseUrl: string): string {
  const said = messageOf(error);
  const isRoute = bodyMessage(error) === null || /route|not found: |invalid url/i.test(said);
  return isRoute
    ? `${baseUrl} has no Batches API there (404): the base URL usually ends in /v1`
    : said;
}

function messageOf(error: APIError): string {
  const text = printable(bodyMessage(error) ?? error.message).replace(/\.$/, '');
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function bodyMessage({ error }: APIError): string | null {
  const message = (error as { message?: unknown } | null | undefined)?.message;
  return typeof message === 'string' && message !== '' ? message : null;
}

const MAX_DEPTH = 8;

/** The innermost error's message, such as `connect ECONNREFUSED 127.0.0.1:8000`. */
/** The cause of a failed connection, which SDKs hide in causes of causes. */
export function deepestReason(error: Error): string {
  let deepest = error;
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    // `localhost` resolves to several addresses, each with its own error: one is enough.
    const { errors } = deepest as { errors?: unknown };
    const next: unknown = Array.isArray(errors) ? errors[0] : deepest.cause;
    if (!types.isNativeError(next)) break;
    deepest = next;
  }
  return printable(deepest.message || deepest.name);
}
