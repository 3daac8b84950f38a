import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError, isNightshiftError } from '../core/errors';
import {
  fromHeaderText,
  isTenantName,
  TENANT_NAME_RULE,
  toHeaderText,
} from '../core/openai/tenant-name';
import type { Config } from '../platform/config-schema';
import { headerValues } from './header-values';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is asking; the routes of `/v1` never see a request without one. */
    tenant: string;
    /** Set where the request does not say who is asking, or contradicts itself. */
    tenantFault: NightshiftError | null;
    /** `performance.now()` at its arrival. */
    arrivedAtMs: number;
  }
}

/** Who asks where nobody says who. */
export const DEFAULT_TENANT = 'default';
const ECHOED_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** Id of a request: the client's own where it is fit to be logged and sent back, else a new one. */
export function requestId(raw: { headers: Record<string, string | string[] | undefined> }): string {
  const given = raw.headers['x-request-id'];
  return typeof given === 'string' && ECHOED_ID.test(given) ? given : newRequestId();
}

/** An id for a request that brings none. */
export function newRequestId(): string {
  return `req_${randomBytes(16).toString('hex')}`;
}

/** Headers of every answer (contract §4); a browser is to make nothing of it but a download. */
export function commonHeaders(requestId: string, tenant: string): Record<string, string> {
  return {
    'x-request-id': requestId,
    'openai-version': '2020-10-01',
    'openai-organization': tenant,
    'openai-processing-ms': '0',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
}

/** Tenant and the headers that every answer carries, errors and downloads included (contract §4). */
export function addRequestContext(app: FastifyInstance, auth: Config['auth']): void {
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
    // Node writes headers together with a text, in the encoding of the text: those that are UTF-8
    // already, one character a byte, would be encoded twice.
    return typeof payload === 'string' ? Buffer.from(payload) : payload;
  });
}

/** What {@link addRequestContext} does on arrival, for answers that pass by all hooks. */
export function setContext(
  request: FastifyRequest,
  reply: FastifyReply,
  auth: Config['auth'],
): void {
  request.arrivedAtMs = performance.now();
  try {
    request.tenant = tenantOf(request, auth);
  } catch (error) {
    if (!isNightshiftError(error)) throw error;
    request.tenantFault = error;
  }
  reply.headers(commonHeaders(request.id, toHeaderText(request.tenant)));
}

/** Asked of every request by RFC 9112 §3.2; the framework's own refusal has no body. */
function checkHost(request: FastifyRequest): void {
  const { raw } = request;
  const hosts = headerValues(request, 'host');
  if (hosts.length > 1 || (raw.headers.host === undefined && raw.httpVersion === '1.1')) {
    throw new NightshiftError('invalid_request', 'The request must have exactly one header Host.');
  }
}

function tenantOf(request: FastifyRequest, auth: Config['auth']): string {
  if (auth.mode !== 'header') return DEFAULT_TENANT;
  const { tenant_header: name } = auth;
  const [given = '', another] = headerValues(request, name);
  // One of them may be the client's own: even two equal values say that the proxy lets it through.
  if (another !== undefined) {
    throw new NightshiftError(
      'invalid_request',
      `The header ${name} was sent twice: send it once.`,
    );
  }
  if (given === '' && auth.require_tenant) {
    const message = `The header ${name} is missing: the proxy in front of this service must set it. The operator can set auth.require_tenant to false to accept such requests as the tenant ${DEFAULT_TENANT}.`;
    throw new NightshiftError('unauthorized', message);
  }
  if (given === '') return DEFAULT_TENANT;
  const tenant = fromHeaderText(given);
  if (tenant !== null && isTenantName(tenant)) return tenant;
  const message = `The header ${name} must be UTF-8, ${TENANT_NAME_RULE}.`;
  throw new NightshiftError('invalid_request', message);
}
