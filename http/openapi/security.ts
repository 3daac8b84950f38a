import type { Config } from '../../platform/config-schema';

type Json = Readonly<Record<string, unknown>>;

/** The settings that decide how a client authenticates. */
export type Authentication = Pick<Config['auth'], 'mode' | 'tenant_header' | 'require_tenant'>;

/** How a request authenticates; null if it need not (docs/design/api-contract.md#authentication-and-tenants). */
export function securityScheme({ mode, tenant_header: name }: Authentication): Json | null {
  if (mode === 'none') return null;
  if (mode === 'api_key') return { type: 'http', scheme: 'bearer' };
  const description = 'The tenant, as a proxy names it.';
  return { type: 'apiKey', in: 'header', name, description };
}

/** The document's `security`. Two alternatives if the scheme is optional. */
export function securityOf({ mode, require_tenant: isRequired }: Authentication): Json[] {
  const named = { caller: [] };
  if (mode === 'none') return [];
  return mode === 'api_key' || isRequired ? [named] : [named, {}];
}
