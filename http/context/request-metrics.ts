import type { FastifyInstance, FastifyRequest } from 'fastify';
import { OTHER } from '../../platform/label-values';
import type { Logger } from '../../platform/logger';
import type { Counter, Gauge, Histogram } from '../../platform/metrics';

/** What a server counts of its requests; `path` is the pattern of the route. */
export interface RequestMetrics {
  readonly requests: Pick<Counter<'method' | 'path' | 'status'>, 'inc'>;
  /** Seconds. */
  readonly requestDuration: Pick<Histogram<'method' | 'path' | 'status'>, 'observe'>;
  readonly requestsInFlight: Pick<Gauge<'method' | 'path'>, 'inc' | 'dec'>;
  /** Connections that the server refused or ended; `reason` is a `ClosedReason`. */
  readonly connectionsClosed: { inc(labels: { readonly reason: string }): void };
}

/** Status of a request whose client disconnected before it was answered. */
const CLIENT_CLOSED = '499';

/** Counts and logs each request when its answer has ended or its client has disconnected. */
export function addRequestMetrics(
  app: FastifyInstance,
  { metrics, logger }: { metrics: RequestMetrics; logger: Logger },
): void {
  app.addHook('onRequest', (request, reply, done) => {
    const labels = { method: methodLabel(request.method), path: pathPattern(request) };
    metrics.requestsInFlight.inc(labels);
    reply.raw.once('close', () => {
      const { headersSent, statusCode } = reply.raw;
      const finished = { ...labels, status: headersSent ? String(statusCode) : CLIENT_CLOSED };
      const tookMs = performance.now() - request.arrivedAtMs;
      metrics.requestsInFlight.dec(labels);
      metrics.requests.inc(finished);
      metrics.requestDuration.observe(finished, tookMs / 1000);
      const { id: requestId, tenant } = request;
      const aborted = !reply.raw.writableFinished;
      logger.debug({ ...finished, requestId, tenant, tookMs, aborted }, 'request answered');
    });
    done();
  });
}

/** The pattern of the route. The path itself would make a time series for every id. */
function pathPattern(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unknown';
}

/** A label for each of HTTP's 35 or so methods would multiply the time series of every path. */
const USUAL_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

function methodLabel(method: string): string {
  return USUAL_METHODS.has(method) ? method : OTHER;
}
