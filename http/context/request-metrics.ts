import type { FastifyInstance, FastifyRequest } from 'fastify';
import { OTHER } from '../../platform/label-values';
import type { Logger } from '../../platform/logger';
import type { RouteMeters } from '../../platform/series/http-series';
import { whenClosed } from '../connections/exchanges';

/** What a server counts of its requests and connections. */
export interface RequestMetrics {
  readonly routes: RouteMeters;
  /** Connections that the server refused or ended; `reason` is a `ClosedReason`. */
  readonly connectionsClosed: { inc(labels: { readonly reason: string }): void };
}

/** Status of a request whose client disconnected before it was answered. */
const CLIENT_CLOSED = '499';
/** The status of a request that became a WebSocket, whose answer the framework did not send. */
const SWITCHED = 101;

/** Counts and logs each request when its answer has ended or its client has disconnected. */
export function addRequestMetrics(
  app: FastifyInstance,
  { metrics, logger }: { metrics: RequestMetrics; logger: Logger },
): void {
  app.addHook('onRequest', (request, reply, done) => {
    const [method, path] = [methodLabel(request.method), pathPattern(request)];
    const route = metrics.routes(method, path);
    route.begin();
    whenClosed(reply.raw, () => {
      const { headersSent, statusCode, writableFinished } = reply.raw;
      const isAnswered = headersSent || statusCode === SWITCHED;
      const status = isAnswered ? String(statusCode) : CLIENT_CLOSED;
      const tookMs = performance.now() - request.arrivedAtMs;
      route.end(status, tookMs / 1000);
      if (!logger.isLevelEnabled('debug')) return;
      const { id: requestId, tenant } = request;
      const answer = { method, path, status, requestId, tenant, tookMs };
      logger.debug({ ...answer, aborted: !writableFinished }, 'request answered');
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
