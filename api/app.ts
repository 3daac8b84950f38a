import { METHODS } from 'node:http';
import Fastify, { type FastifyInstance } from 'fastify';
import type { AppDeps, RouteDeps } from './app-deps';
import { authenticator } from './plugins/authentication';
import { watchBodyRates } from '../http/body-rate';
import { limitConnections } from '../http/connection-limits';
import { addConnectionEvents, answerBrokenRequest } from '../http/connections';
import { addDrain } from '../http/drain';
import { errorHandler, unknownRoute } from '../http/error-envelope';
import { refuseForeignPages } from '../http/foreign-pages';
import { addBodyParsers, MAX_JSON_BYTES } from './plugins/request-bodies';
import { addRequestContext, requestId, setContext } from '../http/request-context';
import { requestRateLimit } from './plugins/request-rate';
import { addRequestMetrics } from './plugins/request-metrics';
import { addBatchRoutes } from './routes/batches';
import { addFileRoutes } from './routes/files';
import { addHealthRoutes } from './routes/health';
import { addOpenApiRoute } from './routes/openapi';
import { addUploadRoutes } from './routes/uploads';
import { FORM_OVERHEAD_BYTES } from './uploads/receive-file';

const MAX_UPLOAD_BYTES = 512 * 1024 ** 2;
const MAX_PART_BYTES = 64 * 1024 ** 2;
const CHECK_CONNECTIONS_MS = 5_000;
/** A connection on which nothing moves for so long is gone; uploads may take any time beyond it. */
const IDLE_CONNECTION_MS = 120_000;

/**
 * The HTTP layer, not yet listening: OpenAI's API under `/v1`, `/health` and `/ready` beside it. The
 * framework's defaults that break the contract (its §4) are undone here. `close()` stops accepting and
 * finishes what runs.
 */
export function buildApp(deps: AppDeps): FastifyInstance {
  const answerError = errorHandler(deps.logger);
  const { api } = deps.config;
  const { max_header_bytes: maxHeaderSize } = api;
  const app = Fastify({
    genReqId: requestId,
    bodyLimit: MAX_JSON_BYTES,
    connectionTimeout: IDLE_CONNECTION_MS,
    requestTimeout: 0,
    http: {
      requireHostHeader: false,
      maxHeaderSize,
      headersTimeout: api.header_timeout,
      connectionsCheckingInterval: Math.min(CHECK_CONNECTIONS_MS, api.header_timeout / 2),
    },
    exposeHeadRoutes: false,
    // A request that arrives during the drain is answered; its connection is closed after it.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // An id may be as long as a URL: what is nobody's is a 404, however long.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: maxHeaderSize },
    frameworkErrors: (error, request, reply) => {
      setContext(request, reply, deps.config.auth);
      answerError(error, request, reply);
    },
    clientErrorHandler: answerBrokenRequest,
  });
  // Node drops headers beyond a count without a word, so that a client could push out the ones that a
  // proxy adds. Only their bytes are limited, and a request with more is refused.
  app.server.maxHeadersCount = 0;
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(unknownRoute);
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
  const all = complete(deps);
  addConnectionEvents(app.server, all.maxUploadBytes + FORM_OVERHEAD_BYTES);
  limitConnections(app.server, {
    total: api.max_connections,
    perAddress: api.max_connections_per_address,
  });
  watchBodyRates(app.server, { bytesPerSec: api.min_body_rate, graceMs: api.body_grace });
  addDrain(app);
  addBodyParsers(app);
  addRequestContext(app, deps.config.auth);
  addRequestMetrics(app, deps);
  refuseForeignPages(app, deps.config);
  addRoutes(app, all);
  return app;
}

function addRoutes(app: FastifyInstance, deps: RouteDeps): void {
  addHealthRoutes(app, deps);
  addOpenApiRoute(app, deps);
  void app.register(
    async (v1) => {
      v1.addHook('onRequest', authenticator(deps));
      const rateLimit = requestRateLimit(deps);
      if (rateLimit !== null) v1.addHook('onRequest', rateLimit);
      addFileRoutes(v1, deps);
      addUploadRoutes(v1, deps);
      addBatchRoutes(v1, deps);
    },
    { prefix: '/v1' },
  );
}

function complete(deps: AppDeps): RouteDeps {
  const { nowMs = Date.now } = deps;
  const { maxUploadBytes = MAX_UPLOAD_BYTES, maxPartBytes = MAX_PART_BYTES } = deps;
  return { ...deps, nowMs, maxUploadBytes, maxPartBytes, nowSec: () => Math.floor(nowMs() / 1000) };
}
