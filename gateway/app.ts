import type { FastifyInstance } from 'fastify';
import type { Authenticator } from '../http/authentication/authenticator';
import { createServer, type ServerLimits } from '../http/server';
import type { FlowConfig } from '../platform/config-gateway';
import type { Config } from '../platform/config-schema';
import type { GatewayMetrics } from '../platform/gateway-metrics';
import type { Logger } from '../platform/logger';
import { gatewayOriginRules, originCheck } from '../platform/own-names';
import type { AudioRoutes } from './audio/audio-context';
import { addAudioRoutes, SPEECH_PATH } from './audio/audio-routes';
import { REST_BYTES } from './audio/receive-form';
import {
  addRealtimeRoute,
  REALTIME_PATH,
  type RealtimeContext,
} from './audio/realtime/realtime-route';
import { addModelRoutes } from './models/model-routes';
import { addOpenApiRoute } from './openapi/openapi-route';
import { PROXIED_PATHS } from './openapi/operations';
import type { PoolTable } from './pools/pool-table';
import { idleConnectionMs } from './pools/settings';
import { addBodyPlaces } from './requests/arriving-bodies';
import type { BodyRoom } from './requests/body-room';
import { addCaller, type WorkerTokenCheck } from './requests/caller';
import type { FaultLog } from './requests/fault-log';
import { handleRequest } from './requests/handle-request';
import { addGatewayTracing, type GatewayTracing } from './requests/request-trace';

/** Settings and dependencies of the gateway. The caller of `buildGateway` opens and closes them. */
export interface GatewayDeps {
  readonly config: Pick<Config, 'auth' | 'batch' | 'gateway' | 'tracing'>;
  readonly pools: PoolTable;
  readonly bodyRoom: BodyRoom;
  /** Used with `auth.mode: api_key`. */
  readonly authenticator: Authenticator;
  readonly isWorkerToken: WorkerTokenCheck;
  readonly metrics: GatewayMetrics;
  readonly audio: AudioRoutes;
  /** Null without audio workers. */
  readonly realtime: Pick<RealtimeContext, 'table' | 'sessions' | 'limits'> | null;
  /** Null if nothing is traced. */
  readonly tracing: GatewayTracing | null;
  readonly logger: Logger;
  /** Logs requests that are not served. */
  readonly faults: Pick<FaultLog, 'log'>;
  /** Milliseconds of a monotonic clock, that of the pools. */
  readonly now: () => number;
}

/** The gateway, not yet listening: OpenAI's routes for inference under `/v1` (docs/gateway.md). */
export function buildGateway(deps: GatewayDeps): FastifyInstance {
  const { config, audio, metrics, realtime, tracing, logger, faults, pools, now } = deps;
  const app = createServer({
    auth: config.auth,
    checkOrigin: originCheck(gatewayOriginRules(config), config.gateway.host),
    limits: serverLimits(config.gateway, audio),
    metrics,
    // Requests get their spans below, when their caller is known.
    tracing: { tracing: null, spanName: () => undefined },
    logger,
    webSocketPaths: realtime === null ? [] : [`/v1${REALTIME_PATH}`],
  });
  const context = { config, pools, metrics, tracing, faults, now };
  addOpenApiRoute(app, config.auth);
  void app.register(
    async (v1) => {
      addCaller(v1, { ...deps, auth: config.auth });
      addGatewayTracing(v1, tracing, config.tracing.request_ratio);
      addBodyPlaces(v1, config, deps.bodyRoom);
      for (const path of PROXIED_PATHS) {
        if (path === SPEECH_PATH) continue;
        v1.post(path, (request, reply) => handleRequest(context, request, reply));
      }
      addModelRoutes(v1, pools, audio.scheduler);
      await v1.register(addAudioRoutes, { ...context, audio, logger });
      if (realtime !== null) {
        const policy = config.gateway.status_policy;
        addRealtimeRoute(v1, { ...realtime, policy, logger });
      }
    },
    { prefix: '/v1' },
  );
  return app;
}

function serverLimits(gateway: FlowConfig, { settings }: AudioRoutes): ServerLimits {
  return {
    headerBytes: gateway.max_header_bytes,
    headerTimeoutMs: gateway.header_timeout,
    idleConnectionMs: idleConnectionMs(gateway),
    collectedBodyBytes: gateway.max_body_bytes,
    bodyBytes: Math.max(gateway.max_body_bytes, settings.max_file_bytes + REST_BYTES),
    bodyRate: { bytesPerSec: gateway.min_body_rate, graceMs: gateway.body_grace },
    connections: {
      total: gateway.max_connections,
      perAddress: gateway.max_connections_per_address ?? gateway.max_connections,
      perAddressSetting: 'gateway.max_connections_per_address',
    },
  };
}
