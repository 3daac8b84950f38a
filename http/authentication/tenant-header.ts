import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { fromHeaderText, isTenantName, TENANT_NAME_RULE } from '../../core/openai/tenant-name';
import type { Config } from '../../platform/config-schema';
import { DEFAULT_TENANT } from '../context/response-headers';
import { headerValues } from '../headers/header-values';

/** The settings that decide where a request's tenant is read from. */
export type TenantSource = Pick<Config['auth'], 'mode' | 'tenant_header' | 'require_tenant'>;

/**
 * The tenant as the headers name it, without any lookup: every answer carries it, and not every route
 * authenticates. With `auth.mode: api_key` only the key's owner is a tenant, so this is the default one
 * (docs/design/api-contract.md#tenant-header). @throws unauthorized, invalid_request
 */
export function tenantFromHeaders(request: FastifyRequest, auth: TenantSource): string {
  if (auth.mode !== 'header') return DEFAULT_TENANT;
  const { tenant_header: name } = auth;
  const [given = '', another] = headerValues(request, name);
  // One of the two may be the client's own. Even equal values show that the proxy lets it through.
  if (another !== undefined) {
    const message = `The header ${name} was sent twice: send it once.`;
    throw new NightshiftError('invalid_request', message);
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
