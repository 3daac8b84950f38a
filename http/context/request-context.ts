import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { toHeaderText } from '../../core/openai/tenant-name';
import { type TenantSource, tenantFromHeaders } from '../authentication/tenant-header';
import { headerValues } from '../headers/header-values';
import { responseHeaders, DEFAULT_TENANT } from './response-headers';

declare module 'fastify' {
  interface FastifyRequest {
    /** On whose behalf the request is served. Final only on routes that authenticate. */
    tenant: string;
    /** Why the headers do not tell the tenant; thrown by routes that authenticate. */
    tenantFault: NightshiftError | null;
    /** `performance.now()` at its arrival. */
    arrivedAtMs: number;
  }
}

/** Sets the tenant and the headers that every answer carries. */
export function addRequestContext(app: FastifyInstance, auth: TenantSource): void {
  app.decorateRequest('tenant', DEFAULT_TENANT);
  app.decorateRequest('tenantFault', null);
  app.decorateRequest('arrivedAtMs', 0);
  app.addHook('onRequest', async (request, reply) => {
    setContext(request, reply, auth);
    checkHost(request);
  });
  app.addHook('onSend', async (request, reply, payload) => {
    const tookMs = Math.round(performance.now() - request.arrivedAtMs);
    reply.header('openai-processing-ms', String(tookMs));
    // Node writes headers and a text body in one piece, in the encoding of the text. Our headers hold
    // UTF-8 as one character a byte, and would be encoded twice.
    return typeof payload === 'string' ? Buffer.from(payload) : payload;
  });
}

/** What {@link addRequestContext} does on arrival, for requests that the framework keeps from all hooks. */
export function setContext(request: FastifyRequest, reply: FastifyReply, auth: TenantSource): void {
  request.arrivedAtMs = performance.now();
  try {
    request.tenant = tenantFromHeaders(request, auth);
  } catch (error) {
    if (!isNightshiftError(error)) throw error;
    request.tenantFault = error;
  }
  reply.headers(responseHeaders(request.id, toHeaderText(request.tenant)));
}

/** RFC 9112 §3.2 requires this check. The framework has it too, but answers without the error envelope. */
function checkHost(request: FastifyRequest): void {
  const { raw } = request;
  const hosts = headerValues(request, 'host');
  if (hosts.length > 1 || (raw.headers.host === undefined && raw.httpVersion === '1.1')) {
    throw new NightshiftError('invalid_request', 'The request must have exactly one header Host.');
  }
}
