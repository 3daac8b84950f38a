import type { FastifyInstance } from 'fastify';
import { requireTenant } from '../http/authentication/authentication';
import type { Authenticator } from '../http/authentication/authenticator';
import { requestRateLimit } from '../http/context/request-rate';
import { createServer, type ServerLimits } from '../http/server';
import { apiOriginRules, originCheck } from '../platform/own-names';
import { version } from '../platform/version';
import type { AppDeps, RouteDeps } from './app-deps';
import { addBatchJobRoutes } from './routes/batch-jobs';
import { addBatchRoutes } from './routes/batches';
import { addFileRoutes } from './routes/files';
import { addHealthRoutes } from './routes/health';
import { addOpenApiRoute } from './routes/openapi';
import { addUploadRoutes } from './routes/uploads';
import { spanName } from './span-names';
import { FileIndexing } from './uploads/file-indexing';
import { FORM_OVERHEAD_BYTES } from './uploads/receive-file';

const MAX_JSON_BYTES = 1024 * 1024;
const MAX_UPLOAD_BYTES = 512 * 1024 ** 2;
const MAX_PART_BYTES = 64 * 1024 ** 2;

/** The API, not yet listening: OpenAI's routes under `/v1`, and `/health`, `/ready`, `/openapi.json`. */
export function buildApp(given: AppDeps): FastifyInstance {
  const deps = complete(given);
  const { config, metrics, logger } = deps;
  const app = createServer({
    auth: config.auth,
    checkOrigin: originCheck(apiOriginRules(config), config.api.host),
    limits: serverLimits(deps),
    metrics,
    tracing: { tracing: deps.tracing, spanName },
    logger,
  });
  addHealthRoutes(app, deps);
  addOpenApiRoute(app, deps);
  void app.register(async (v1) => addVersionedRoutes(v1, deps), { prefix: '/v1' });
  return app;
}

function addVersionedRoutes(v1: FastifyInstance, deps: RouteDeps): void {
  const { config, nowMs } = deps;
  v1.addHook('onRequest', requireTenant(config.auth, keyOwners(deps)));
  const { requests_per_minute: perMinute } = config.limits.tenant;
  if (perMinute !== undefined) v1.addHook('onRequest', requestRateLimit(perMinute, nowMs));
  addFileRoutes(v1, deps);
  addUploadRoutes(v1, deps);
  addBatchRoutes(v1, deps);
  addBatchJobRoutes(v1, deps);
}

function keyOwners({ apiKeys, nowSec }: RouteDeps): Authenticator {
  return { authenticate: (key) => apiKeys.authenticate(key, nowSec()) };
}

function serverLimits({ config: { api }, maxUploadBytes }: RouteDeps): ServerLimits {
  return {
    headerBytes: api.max_header_bytes,
    headerTimeoutMs: api.header_timeout,
    collectedBodyBytes: MAX_JSON_BYTES,
    bodyBytes: maxUploadBytes + FORM_OVERHEAD_BYTES,
    bodyRate: { bytesPerSec: api.min_body_rate, graceMs: api.body_grace },
    connections: {
      total: api.max_connections,
      perAddress: api.max_connections_per_address,
      perAddressSetting: 'api.max_connections_per_address',
    },
  };
}

function complete(deps: AppDeps): RouteDeps {
  const { nowMs = Date.now, tracing = null, lineIndex = null } = deps;
  const { maxUploadBytes = MAX_UPLOAD_BYTES, maxPartBytes = MAX_PART_BYTES } = deps;
  const nowSec = () => Math.floor(nowMs() / 1000);
  const indexing = new FileIndexing({
    index: lineIndex,
    settings: deps.config,
    release: version(),
  });
  const bounds = { maxUploadBytes, maxPartBytes };
  return { ...deps, ...bounds, nowMs, tracing, lineIndex, nowSec, indexing };
}
