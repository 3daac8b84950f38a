import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { fromHeaderText, isTenantName, TENANT_NAME_RULE } from '../../core/openai/tenant-name';
import type { Config } from '../../platform/config-schema';
import { DEFAULT_TENANT } from '../context/response-headers';
import { headerValues } from '../headers/header-values';

/** The settings that decide where a request's tenant is read from. */
export type TenantSource = Pick<Config['auth'], 'mode' | 'tenant_header' | 'require_tenant'>;

/**
 * The tenant that the headers name (docs/design/api-contract.md#tenant-header). Every answer carries the
 * tenant, also on routes that do not authenticate, so this needs no lookup. With `auth.mode: api_key` the
 * headers do not name the tenant, so this returns the default one. @throws unauthorized, invalid_request
 */
export function tenantFromHeaders(request: FastifyRequest, auth: TenantSource): string {
  if (auth.mode !== 'header') return DEFAULT_TENANT;
  const { tenant_header: name } = auth;
  const [given = '', another] = headerValues(request, name);
  // A client may have sent one of the two. Even equal values show that the proxy passes it on.
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
