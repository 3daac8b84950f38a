import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FaultCode } from '../../core/dispatch/drop-codes';
import { BAND_NAMES } from '../../core/dispatch/queue/band';
import type { QueuedRequest } from '../../core/dispatch/queue/queued-request';
import { traceRequest } from '../../http/context/request-tracing';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import { redactUrl } from '../../platform/config-redact';
import type { OpenSpan, Tracing } from '../../platform/tracing/tracing';

/** What the gateway needs of tracing. */
export type GatewayTracing = Pick<Tracing, 'beginRequest' | 'beginChild'>;

/**
 * Gives sampled requests a span (docs/design/tracing.md#requests-of-the-gateway). It must come after the hook that
 * finds the caller. Without tracing no hook is added.
 *
 * @param ratio share of the clients' requests without `traceparent` that may get a span
 */
export function addGatewayTracing(
  app: FastifyInstance,
  tracing: GatewayTracing | null,
  ratio: number,
): void {
  if (tracing === null) return;
  app.addHook('onRequest', async (request, reply) => {
    if (request.method !== 'POST' || !maySample(request, ratio)) return;
    traceRequest(request, reply, tracing.beginRequest('gateway-request', request.raw.headers));
  });
  app.addHook('onError', async (request, _reply, error) => {
    request.thrown = error;
  });
}

/** A worker has decided for its lines: those that it samples have a `traceparent`. */
function maySample({ raw, isWorker }: FastifyRequest, ratio: number): boolean {
  return raw.headers['traceparent'] !== undefined || (!isWorker && Math.random() < ratio);
}

/** Begins the span of an exchange with a backend; null if the request has no span. */
export function traceExchange(
  tracing: GatewayTracing | null,
  { span }: Pick<FastifyRequest, 'span'>,
  backendUrl: string,
): OpenSpan | null {
  if (tracing === null || span === null) return null;
  const attributes = { 'gateway.backend': redactUrl(backendUrl) };
  return span.run(() => tracing.beginChild('backend-exchange', attributes));
}

/** Names and values of the headers that continue the trace in the backend. */
export function traceFields(span: OpenSpan | null): readonly string[] {
  return span === null ? [] : Object.entries(span.headers()).flat();
}

/** Headers of a client that must not reach the backend beside those of a span. */
export const TRACE_HEADERS: readonly string[] = ['traceparent', 'tracestate'];

/** Ends the span of an exchange. */
export function endExchangeSpan(span: OpenSpan | null, end: ExchangeEnd): void {
  if (span === null) return;
  const { outcome, status, ttfbMs, usage, message } = end;
  span.set({
    'gateway.outcome': outcome,
    'http.response.status_code': status,
    'gateway.ttfb_ms': ttfbMs === null ? null : Math.round(ttfbMs),
    'gen_ai.usage.input_tokens': usage?.inputTokens,
    'gen_ai.usage.output_tokens': usage?.outputTokens,
  });
  if (outcome !== 'answered' && outcome !== 'declined') span.fail(new Error(message ?? outcome));
  else if (status !== null && status >= 400) span.set({ 'error.type': String(status) });
  span.end();
}

/** What the queue made of a request. */
export interface QueuedTrace {
  readonly pool: string;
  readonly queued: QueuedRequest;
  readonly waitedMs: number;
  /** What made it its turn; null if it was never dispatched. */
  readonly by: string | null;
}

/** Sets what the queue made of a request on its span. */
export function traceQueue(
  { span, isWorker, id }: FastifyRequest,
  { pool, queued, waitedMs, by }: QueuedTrace,
): void {
  if (span === null) return;
  span.set({
    'gen_ai.request.model': queued.model,
    'gateway.pool': pool,
    'gateway.band': BAND_NAMES[queued.band],
    'gateway.queue_ms': Math.round(waitedMs),
    'gateway.dispatched_by': by,
    ...(isWorker ? { 'batch.line.id': id } : {}),
  });
}

/** How a request ended. */
export interface EndTrace {
  readonly end: ExchangeEnd | null;
  /** Why the gateway answers it; null if a backend does. */
  readonly fault: FaultCode | null;
}

/** Sets how a request ended on its span. */
export function traceEnd(request: FastifyRequest, { end, fault }: EndTrace): void {
  const { span } = request;
  if (span === null) return;
  span.set({
    'gateway.code': fault,
    'gen_ai.usage.input_tokens': end?.usage?.inputTokens,
    'gen_ai.usage.output_tokens': end?.usage?.outputTokens,
  });
  const isCut = end !== null && end.isHeadSent && end.outcome !== 'answered';
  if (isCut && end.outcome !== 'client_closed') {
    request.thrown = new Error(end.message ?? end.outcome);
  }
}
