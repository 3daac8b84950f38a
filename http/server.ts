import { METHODS } from 'node:http';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from '../platform/logger';
import type { OriginCheck } from '../platform/own-names';
import type { TenantSource } from './authentication/tenant-header';
import { addBodyParsers } from './bodies/body-parsers';
import { type BodyRate, watchBodyRates } from './connections/body-rate';
import type { OnClosed } from './connections/closed-reason';
import { addConnectionEvents, answerBrokenRequest } from './connections/connection-events';
import { limitConnections, type NamedConnectionLimits } from './connections/connection-limits';
import { addDrain } from './connections/drain';
import { endPipelinedAnswers } from './connections/pipelined-answers';
import { serveUpgrades, upgradingAt } from './connections/web-sockets';
import { refuseForeignPages } from './context/foreign-pages';
import { addRequestContext, setContextWithoutHooks } from './context/request-context';
import { requestId } from './context/request-id';
import { addRequestMetrics, type RequestMetrics } from './context/request-metrics';
import { addRequestTracing, type RequestTracingOptions } from './context/request-tracing';
import { errorHandler, unknownRoute } from './errors/error-handler';

/** Limits of requests and connections. */
export interface ServerLimits {
  readonly headerBytes: number;
  readonly headerTimeoutMs: number;
  /** A connection without traffic for this long is closed; 120 s by default. */
  readonly idleConnectionMs?: number;
  /** Longest body that is collected for a route; a form is bounded by its route. */
  readonly collectedBodyBytes: number;
  /** Longest body of any route. */
  readonly bodyBytes: number;
  readonly bodyRate: BodyRate;
  readonly connections: NamedConnectionLimits;
}

/** Settings and dependencies of a server. */
export interface ServerOptions {
  readonly auth: TenantSource;
  readonly checkOrigin: OriginCheck;
  readonly limits: ServerLimits;
  readonly metrics: RequestMetrics;
  readonly tracing: RequestTracingOptions;
  readonly logger: Logger;
  /** Paths at which clients may ask for a WebSocket; none by default. */
  readonly webSocketPaths?: readonly string[];
}

const CHECK_CONNECTIONS_MS = 5_000;
/** An upload with traffic may take any time. */
const IDLE_CONNECTION_MS = 120_000;

/**
 * A server without routes, not yet listening. It gives every request an id and a tenant, limits the
 * resources that a client can use, and answers every failure in the error envelope
 * (docs/design/api-contract.md#error-envelope). Framework defaults with other error answers are turned
 * off. `close()` stops accepting connections and waits for the running requests.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const answerError = errorHandler(options.logger);
  const { auth, limits, metrics, webSocketPaths = [] } = options;
  const onClosed: OnClosed = (reason) => metrics.connectionsClosed.inc({ reason });
  const app = Fastify({
    genReqId: requestId,
    bodyLimit: limits.collectedBodyBytes,
    connectionTimeout: limits.idleConnectionMs ?? IDLE_CONNECTION_MS,
    requestTimeout: 0,
    http: {
      ...(webSocketPaths.length > 0 ? { IncomingMessage: upgradingAt(webSocketPaths) } : {}),
      requireHostHeader: false,
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headerTimeoutMs,
      connectionsCheckingInterval: Math.min(CHECK_CONNECTIONS_MS, limits.headerTimeoutMs / 2),
    },
    exposeHeadRoutes: false,
    // A request that arrives during the drain is answered. Then its connection is closed.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // An unknown id of any length gets a 404.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: limits.headerBytes },
    frameworkErrors: (error, request, reply) => {
      setContextWithoutHooks(request, reply, auth);
      answerError(error, request, reply);
    },
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, onClosed),
  });
  // Node silently drops headers beyond a count, so a client could push out those that a proxy adds.
  // Only the bytes are limited, and a request beyond that limit is refused.
  app.server.maxHeadersCount = 0;
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(unknownRoute);
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
  addConnectionEvents(app.server, limits.bodyBytes);
  endPipelinedAnswers(app.server);
  if (webSocketPaths.length > 0) serveUpgrades(app.server);
  limitConnections(app.server, limits.connections, onClosed);
  watchBodyRates(app.server, limits.bodyRate, onClosed);
  addDrain(app);
  addBodyParsers(app, limits.collectedBodyBytes);
  addRequestContext(app, auth);
  addRequestMetrics(app, options);
  addRequestTracing(app, options.tracing);
  refuseForeignPages(app, options.checkOrigin);
  return app;
}
