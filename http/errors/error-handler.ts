import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { type NightshiftError, isNightshiftError } from '../../core/errors';
import type { Logger } from '../../platform/logger';
import { type ErrorBody, invalidRequest, JSON_TYPE, RETRY_AFTER_SEC } from './error-envelope';

interface Answer {
  readonly status: number;
  readonly body: ErrorBody;
}

/** Headers that a handler set for its body before it failed; they would contradict the error's body. */
const BODY_HEADERS = ['content-length', 'content-range', 'content-disposition', 'accept-ranges'];

/** Answers what a hook, a parser or a handler threw. The text of a 5xx is constant; its cause is logged. */
export function errorHandler(logger: Logger) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const answer = answerOf(error);
    if (answer.status >= 500) {
      const { method } = request;
      const path = request.routeOptions.url;
      logger.error({ err: error, requestId: request.id, method, path }, 'request failed');
    }
    for (const name of BODY_HEADERS) {
      reply.removeHeader(name);
      reply.raw.removeHeader(name);
    }
    setRetryHeaders(reply, { status: answer.status, error });
    void reply.code(answer.status).type(JSON_TYPE).send(answer.body);
  };
}

/** The 404 of a path without a route. */
export function unknownRoute(request: FastifyRequest, reply: FastifyReply): void {
  const path = request.url.split('?', 1)[0] ?? '';
  const message = `Invalid URL (${request.method} ${path})`;
  void reply.code(404).type(JSON_TYPE).send(invalidRequest(message));
}

function setRetryHeaders(
  reply: FastifyReply,
  { status, error }: { status: number; error: unknown },
): void {
  const hasRetryAfter = reply.hasHeader('retry-after');
  if ((status === 429 || status === 503) && !hasRetryAfter) {
    reply.header('retry-after', RETRY_AFTER_SEC[status]);
  }
  // A retry would exceed the quota again, and SDKs would send a whole file for it.
  if (isNightshiftError(error, 'quota_exceeded')) reply.header('x-should-retry', 'false');
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

/** Our texts for errors that the framework itself raises, by its codes. */
const FRAMEWORK_TEXTS: Readonly<Record<string, string>> = {
  FST_ERR_BAD_URL: 'The URL of the request is not valid.',
};

function serverError(status: number): Answer {
  const message =
    status === 503
      ? 'The service is overloaded or not ready yet. Please try again.'
      : 'The server had an error while processing your request. Please try again.';
  return { status, body: { error: { message, type: 'server_error', param: null, code: null } } };
}
