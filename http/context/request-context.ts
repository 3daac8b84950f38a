import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { toHeaderText } from '../../core/openai/tenant-name';
import { type TenantSource, tenantFromHeaders } from '../authentication/tenant-header';
import { headerValues } from '../headers/header-values';
import { responseHeaders, DEFAULT_TENANT } from './response-headers';

declare module 'fastify' {
  interface FastifyRequest {
    /** Owner of the objects that the request works on. Final only after authentication. */
    tenant: string;
    /** Why the headers name no valid tenant. Routes that authenticate throw it. */
    tenantFault: NightshiftError | null;
    /** `performance.now()` when the request arrived. */
    arrivedAtMs: number;
  }
}

/**
 * Sets the tenant and the headers that every answer carries. The headers are set when an answer is sent: the gateway
 * passes answers of backends on, which do not have them. Hooks on the way of every request call back, because each
 * promise would cost it a turn of the microtask queue.
 */
export function addRequestContext(app: FastifyInstance, auth: TenantSource): void {
  app.decorateRequest('tenant', DEFAULT_TENANT);
  app.decorateRequest('tenantFault', null);
  app.decorateRequest('arrivedAtMs', 0);
  app.addHook('onRequest', (request, _reply, done) => {
    setContext(request, auth);
    checkHost(request);
    done();
  });
  app.addHook('onSend', async (request, reply, payload) => {
    setHeaders(request, reply);
    // Node writes headers and a text body in one piece and encodes both as UTF-8. Our headers hold one
    // character per UTF-8 byte, so they would be encoded twice. A buffer is written separately.
    return typeof payload === 'string' ? Buffer.from(payload) : payload;
  });
}

/** Sets the tenant and the arrival time of a request, and the headers of its answer, if the framework runs no hooks. */
export function setContextWithoutHooks(
  request: FastifyRequest,
  reply: FastifyReply,
  auth: TenantSource,
): void {
  setContext(request, auth);
  setHeaders(request, reply);
}

function setContext(request: FastifyRequest, auth: TenantSource): void {
  request.arrivedAtMs = performance.now();
  try {
    request.tenant = tenantFromHeaders(request, auth);
  } catch (error) {
    if (!isNightshiftError(error)) throw error;
    request.tenantFault = error;
  }
}

function setHeaders(request: FastifyRequest, reply: FastifyReply): void {
  const tookMs = Math.round(performance.now() - request.arrivedAtMs);
  reply.headers(responseHeaders(request.id, toHeaderText(request.tenant), tookMs));
}

/** RFC 9112 §3.2 requires this check. Node has it too, but answers without the error envelope. */
function checkHost(request: FastifyRequest): void {
  const { raw } = request;
  const hosts = headerValues(request, 'host');
  if (hosts.length > 1 || (raw.headers.host === undefined && raw.httpVersion === '1.1')) {
    throw new NightshiftError('invalid_request', 'The request must have exactly one header Host.');
  }
}
