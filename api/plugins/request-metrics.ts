import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiMetrics } from '../../platform/api-metrics';
import { OTHER } from '../../platform/label-values';
import type { Logger } from '../../platform/logger';

/** Status of a request whose client left before there was an answer. */
const CLIENT_LEFT = '499';

/** Counts and logs each request when its answer is over, also where the client left before. */
export function addRequestMetrics(
  app: FastifyInstance,
  { metrics, logger }: { metrics: ApiMetrics; logger: Logger },
): void {
  app.addHook('onRequest', async (request, reply) => {
    const labels = { method: methodLabel(request.method), path: pathPattern(request) };
    metrics.requestsInFlight.inc(labels);
    reply.raw.once('close', () => {
      const { headersSent, statusCode } = reply.raw;
      const finished = { ...labels, status: headersSent ? String(statusCode) : CLIENT_LEFT };
      const tookMs = performance.now() - request.arrivedAtMs;
      metrics.requestsInFlight.dec(labels);
      metrics.requests.inc(finished);
      metrics.requestDuration.observe(finished, tookMs / 1000);
      const { id: requestId, tenant } = request;
      const aborted = !reply.raw.writableFinished;
      logger.debug({ ...finished, requestId, tenant, tookMs, aborted }, 'request answered');
    });
  });
}

/** The route's pattern: what was asked for would make a label for every id. */
function pathPattern(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unknown';
}

/** HTTP knows some 35 methods, and each would have its series for every path. */
const USUAL_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

function methodLabel(method: string): string {
  return USUAL_METHODS.has(method) ? method : OTHER;
}
