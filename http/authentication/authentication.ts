import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { headerValues } from '../headers/header-values';
import type { Authenticator } from './authenticator';
import { bearerKey } from './bearer-key';
import type { TenantSource } from './tenant-header';

/**
 * A hook for routes that must know the tenant (docs/design/api-contract.md#authentication-and-tenants).
 * With `auth.mode: api_key` the tenant is the owner of the key. In other modes the hook only throws the
 * error that was found in the tenant header. The hook throws unauthorized, invalid_request, and the errors
 * of `authenticator`.
 */
export function requireTenant(
  { mode }: Pick<TenantSource, 'mode'>,
  authenticator: Authenticator,
): onRequestHookHandler {
  if (mode !== 'api_key') {
    return (request, _reply, done) => {
      if (request.tenantFault !== null) throw request.tenantFault;
      done();
    };
  }
  return (request, reply, done) => {
    ownerOfKey(request, reply, authenticator).then((tenant) => {
      request.tenant = tenant;
      done();
    }, done);
  };
}

async function ownerOfKey(
  request: FastifyRequest,
  reply: FastifyReply,
  authenticator: Authenticator,
): Promise<string> {
  const given = headerValues(request, 'authorization').filter((value) => value !== '');
  const [first = '', another] = new Set(given);
  const key = bearerKey(first);
  if (key === null) throw refused(reply, NO_KEY, null);
  if (another !== undefined) throw refused(reply, TWO_KEYS, 'invalid_api_key');
  const caller = await authenticator.authenticate(key);
  if (caller === null) throw refused(reply, WRONG_KEY, 'invalid_api_key');
  return caller.tenant;
}

const NO_KEY =
  "You didn't provide an API key. Send it as a Bearer token in the header Authorization.";
const TWO_KEYS = 'There is more than one value of the header Authorization: send one key.';
/** Repeats nothing of the key, because answers end up in logs. */
const WRONG_KEY = 'Incorrect API key provided: it is unknown, revoked, or expired.';

function refused(reply: FastifyReply, message: string, apiCode: string | null): NightshiftError {
  reply.header('www-authenticate', 'Bearer');
  return new NightshiftError('unauthorized', message, apiCode === null ? {} : { apiCode });
}
