/** A server made of `http/` alone, without files, batches and a database. */
import type { AddressInfo } from 'node:net';
import type { FastifyInstance, FastifyReply } from 'fastify';
import pino from 'pino';
import { requireTenant } from '../../http/authentication/authentication';
import type { Authenticator } from '../../http/authentication/authenticator';
import { bodyChunks } from '../../http/bodies/body-chunks';
import { parseJsonBody } from '../../http/bodies/json-body';
import { formBoundary, formEntries, readEntry } from '../../http/multipart/form-entries';
import { malformed } from '../../http/multipart/malformed';
import { addResource } from '../../http/resource';
import { createServer, type ServerLimits } from '../../http/server';
import { createApiMetrics } from '../../platform/api-metrics';
import { configSchema } from '../../platform/config-schema';
import { createMetricsRegistry, type Registry } from '../../platform/metrics';
import { apiOriginRules, originCheck } from '../../platform/own-names';

/** What a test may set differently. */
export interface TestServerOptions {
  readonly auth?: Record<string, unknown>;
  readonly limits?: Partial<ServerLimits>;
  readonly authenticator?: Authenticator;
}

/** A listening server. */
export interface TestServer {
  readonly app: FastifyInstance;
  readonly port: number;
  readonly registry: Registry;
  /** Requests to `/v1/wait`, which are answered when a test does it. */
  readonly waiting: FastifyReply[];
  close(): Promise<void>;
}

const FORM_BYTES = 1_000_000;
const NO_KEYS: Authenticator = { authenticate: async () => null };

/**
 * Opens a server with the routes `/health`, `GET /v1/items`, `POST /v1/items` (JSON, answered with its
 * own body), `POST /v1/forms` (answered with the names of its entries) and `GET /v1/wait`.
 */
export async function openTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const config = configSchema.parse({ auth: options.auth ?? {} });
  const registry = createMetricsRegistry('api');
  const app = createServer({
    auth: config.auth,
    checkOrigin: originCheck(apiOriginRules(config), config.api.host),
    metrics: createApiMetrics(registry),
    tracing: { tracing: null, spanName: () => undefined },
    logger: pino({ level: 'silent' }),
    limits: {
      headerBytes: config.api.max_header_bytes,
      headerTimeoutMs: config.api.header_timeout,
      collectedBodyBytes: 1024 * 1024,
      bodyBytes: FORM_BYTES,
      bodyRate: { bytesPerSec: 0, graceMs: 1_000 },
      connections: { total: 100, perAddress: 100, perAddressSetting: 'a.setting' },
      ...options.limits,
    },
  });
  const waiting: FastifyReply[] = [];
  addResource(app, '/health', { GET: async () => ({ status: 'ok' }) });
  void app.register(
    async (v1) => {
      v1.addHook('onRequest', requireTenant(config.auth, options.authenticator ?? NO_KEYS));
      addRoutes(v1, waiting);
    },
    { prefix: '/v1' },
  );
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { app, port, registry, waiting, close: () => app.close() };
}

function addRoutes(v1: FastifyInstance, waiting: FastifyReply[]): void {
  addResource(v1, '/items', {
    GET: async () => ({ items: [] }),
    POST: async (request) => parseJsonBody(request.body),
  });
  addResource(v1, '/wait', {
    GET: async (_request, reply) => {
      waiting.push(reply);
      return reply.hijack();
    },
  });
  addResource(v1, '/forms', {
    POST: async (request) => {
      const boundary = formBoundary(request.headers['content-type']) ?? 'none';
      const bounds = {
        maxBytes: FORM_BYTES,
        tooLong: () => malformed('it is too long'),
        cut: (cause: unknown) => malformed('it was cut', cause),
      };
      const names: string[] = [];
      for await (const entry of formEntries(bodyChunks(request, bounds), boundary)) {
        await readEntry(entry, FORM_BYTES);
        names.push(entry.name);
      }
      return { names };
    },
  });
}
