import type { FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { toHeaderText } from '../../core/openai/tenant-name';
import type { RouteDeps } from '../app-deps';
import { trimBlanks } from '../../http/header-text';
import { headerValues } from '../../http/header-values';

type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * For the routes that need to know who is asking (contract §7.1): passes on what the tenant header
 * said, or looks the key up. @throws unauthorized, invalid_request, postgres_unavailable
 */
export function authenticator(deps: Pick<RouteDeps, 'config' | 'apiKeys' | 'nowSec'>): Hook {
  if (deps.config.auth.mode !== 'api_key') {
    return async (request) => {
      if (request.tenantFault !== null) throw request.tenantFault;
    };
  }
  return async (request, reply) => {
    const given = headerValues(request, 'authorization').filter((value) => value !== '');
    const [first = '', another] = new Set(given);
    const key = bearerKey(first);
    if (key === null) throw refused(reply, NO_KEY, null);
    // Of two keys nobody could tell whose request it is.
    if (another !== undefined) throw refused(reply, TWO_KEYS, 'invalid_api_key');
    const owner = await deps.apiKeys.authenticate(key, deps.nowSec());
    if (owner === null) throw refused(reply, WRONG_KEY, 'invalid_api_key');
    request.tenant = owner.tenant;
    reply.header('openai-organization', toHeaderText(owner.tenant));
  };
}

/** The key of `Bearer <key>`; null for any other value. */
export function bearerKey(authorization: string): string | null {
  const scheme = authorization.slice(0, 7);
  if (!/^bearer[ \t]$/i.test(scheme)) return null;
  const key = trimBlanks(authorization.slice(scheme.length));
  return key === '' ? null : key;
}

const NO_KEY =
  "You didn't provide an API key. Send it as a Bearer token in the header Authorization.";
const TWO_KEYS = 'There is more than one value of the header Authorization: send one key.';
/** Nothing of the key: answers end up in logs. */
const WRONG_KEY = 'Incorrect API key provided: it is unknown, revoked, or expired.';

function refused(reply: FastifyReply, message: string, apiCode: string | null): NightshiftError {
  reply.header('www-authenticate', 'Bearer');
  return new NightshiftError('unauthorized', message, apiCode === null ? {} : { apiCode });
}
