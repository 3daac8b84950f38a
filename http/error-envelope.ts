import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { type NightshiftError, isNightshiftError } from '../core/errors';
import type { Logger } from '../platform/logger';

/** Body of every answer that is not 200: always these four keys (contract §4). */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

interface Answer {
  readonly status: number;
  readonly body: ErrorBody;
}

/** Headers of a download that must not stand on the error that came instead. */
const DOWNLOAD_HEADERS = [
  'content-length',
  'content-range',
  'content-disposition',
  'accept-ranges',
];
/** 1 to 60: what is outside is not heeded by every SDK (contract §4). */
export const RETRY_AFTER_SEC: Readonly<Record<number, string>> = { 429: '5', 503: '2' };
/** Content type of every answer but a download. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** Answers what a hook, a parser or a handler threw; the text of a 5xx is constant, its cause logged. */
export function errorHandler(logger: Logger) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const answer = answerOf(error);
    if (answer.status >= 500) {
      const { method } = request;
      const path = request.routeOptions.url;
      logger.error({ err: error, requestId: request.id, method, path }, 'request failed');
    }
    for (const name of DOWNLOAD_HEADERS) {
      reply.removeHeader(name);
      reply.raw.removeHeader(name);
    }
    const retryAfterSec = RETRY_AFTER_SEC[answer.status];
    const isSet = reply.hasHeader('retry-after');
    if (retryAfterSec !== undefined && !isSet) reply.header('retry-after', retryAfterSec);
    // Nothing gets better by itself: SDKs would send the whole file again.
    if (isNightshiftError(error, 'quota_exceeded')) reply.header('x-should-retry', 'false');
    void reply.code(answer.status).type(JSON_TYPE).send(answer.body);
  };
}

/** The 404 of a path that is nobody's. */
export function unknownRoute(request: FastifyRequest, reply: FastifyReply): void {
  const path = request.url.split('?', 1)[0] ?? '';
  const message = `Invalid URL (${request.method} ${path})`;
  void reply.code(404).type(JSON_TYPE).send(invalidRequest(message));
}

function answerOf(error: unknown): Answer {
  if (isNightshiftError(error)) {
    if (error.httpStatus >= 500) return serverError(error.httpStatus);
    const { httpStatus: status, message, param, apiCode: code } = error;
    return { status, body: { error: { message, type: typeOf(error), param, code } } };
  }
  const { statusCode, code } = error as Partial<FastifyError>;
  if (statusCode === undefined || statusCode >= 500 || statusCode < 400) return serverError(500);
  const message = FRAMEWORK_TEXTS[code ?? ''] ?? 'The request is not valid.';
  return { status: statusCode, body: invalidRequest(message) };
}

function typeOf({ code }: NightshiftError): string {
  if (code === 'rate_limited') return 'requests';
  return code === 'quota_exceeded' ? 'insufficient_quota' : 'invalid_request_error';
}

/** The framework's own faults, in our words. */
const FRAMEWORK_TEXTS: Readonly<Record<string, string>> = {
  FST_ERR_BAD_URL: 'The URL of the request is not valid.',
};

/** The body of a 4xx without param and code. */
export function invalidRequest(message: string): ErrorBody {
  return { error: { message, type: 'invalid_request_error', param: null, code: null } };
}

function serverError(status: number): Answer {
  const message =
    status === 503
      ? 'The service is overloaded or not ready yet. Please try again.'
      : 'The server had an error while processing your request. Please try again.';
  return { status, body: { error: { message, type: 'server_error', param: null, code: null } } };
}
