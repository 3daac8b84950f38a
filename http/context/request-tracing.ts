import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isNightshiftError } from '../../core/errors';
import type { OpenSpan, SpanAttributes, Tracing } from '../../platform/tracing/tracing';

declare module 'fastify' {
  interface FastifyRequest {
    /** The span of the request; null if it has none. */
    span: OpenSpan | null;
    /** What the handler threw, or why it could not finish the answer; undefined for neither. */
    thrown: Error | undefined;
    /** The end of the span waits for it; null if nothing follows the answer. It must not reject. */
    workAfterAnswer: Promise<unknown> | null;
  }
}

/** What the spans of a server's requests are made from. */
export interface RequestTracingOptions {
  readonly tracing: Pick<Tracing, 'beginRequest'> | null;
  /** Name of the span of a route; undefined for a route that has none. `url` is the pattern of its path. */
  spanName(method: string, url: string | undefined): string | undefined;
}

/**
 * Gives each request a span from its arrival to the end of its answer. What the handler does is below it.
 * Without tracing no hook is added, so a request costs the same as before.
 */
export function addRequestTracing(app: FastifyInstance, options: RequestTracingOptions): void {
  app.decorateRequest('span', null);
  app.decorateRequest('thrown', undefined);
  app.decorateRequest('workAfterAnswer', null);
  const { tracing, spanName } = options;
  if (tracing === null) return;
  app.addHook('onRequest', async (request, reply) => {
    const name = spanName(request.method, request.routeOptions.url);
    if (name === undefined) return;
    traceRequest(request, reply, tracing.beginRequest(name, request.raw.headers));
  });
  // The handler is called by `done`, so it runs while the span is active.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span === null) done();
    else request.span.run(done);
  });
  app.addHook('onError', async (request, _reply, error) => {
    request.thrown = error;
  });
}

/** Ends `span`, with what is known of the request, when the answer has ended or its client has disconnected. */
export function traceRequest(request: FastifyRequest, reply: FastifyReply, span: OpenSpan): void {
  request.span = span;
  let isAnswered = false;
  reply.raw.once('finish', () => (isAnswered = true));
  const end = (): void => endSpan(request, reply, { span, isAnswered });
  reply.raw.once('close', () => {
    if (request.workAfterAnswer === null) end();
    else void request.workAfterAnswer.then(end);
  });
}

const CLIENT_GONE = 'the client disconnected before the answer ended';

function endSpan(
  request: FastifyRequest,
  { raw }: FastifyReply,
  { span, isAnswered }: { span: OpenSpan; isAnswered: boolean },
): void {
  const { thrown } = request;
  span.set({
    ...objectIds(request.params),
    'http.request.method': request.method,
    'http.route': request.routeOptions.url,
    'http.request.id': request.id,
    'tenant.id': request.tenant,
    ...(raw.headersSent ? { 'http.response.status_code': raw.statusCode } : {}),
  });
  if (!isAnswered) span.fail(thrown ?? new Error(CLIENT_GONE));
  else if (raw.statusCode >= 500) span.fail(thrown ?? new Error(`status ${raw.statusCode}`));
  else if (thrown !== undefined) span.set({ 'error.type': codeOf(thrown) });
  span.end();
}

/** `batch.id`, `file.id` and `upload.id` of the path. */
function objectIds(params: unknown): SpanAttributes {
  const given = Object.entries((params ?? {}) as Record<string, string>);
  return Object.fromEntries(given.map(([name, id]) => [name.replace('_', '.'), id]));
}

function codeOf(error: Error): string {
  return isNightshiftError(error) ? error.code : error.name;
}
