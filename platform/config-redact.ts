import type { PoolConfig } from './config-gateway';
import type { Config } from './config-schema';

const HIDDEN = '***';

/** A copy that may be printed or logged: keys and passwords are replaced by `***`. */
export function redactConfig(config: Config): Config {
  const { otlp_endpoint: otlp } = config.tracing;
  const { global_inference_gateway: gateway, model_gateways: gateways } = config;
  return {
    ...config,
    temporal: redactTemporal(config.temporal),
    postgres: { ...config.postgres, url: redactUrl(config.postgres.url) },
    tracing:
      otlp === undefined ? config.tracing : { ...config.tracing, otlp_endpoint: redactUrl(otlp) },
    object_store: redactStore(config.object_store),
    gateway: { ...config.gateway, pools: mapValues(config.gateway.pools, redactPool) },
    providers: mapValues(config.providers, withRedactedUrl),
    ...(gateway === undefined ? {} : { global_inference_gateway: withRedactedUrl(gateway) }),
    ...(gateways === undefined ? {} : { model_gateways: mapValues(gateways, withRedactedUrl) }),
  };
}

function redactTemporal(temporal: Config['temporal']): Config['temporal'] {
  const { api_key: key, tls } = temporal;
  const hasKeyText = typeof tls === 'object' && tls.client_key_data !== undefined;
  return {
    ...temporal,
    ...(key === undefined ? {} : { api_key: HIDDEN }),
    ...(hasKeyText ? { tls: { ...tls, client_key_data: HIDDEN } } : {}),
  };
}

function redactStore(store: Config['object_store']): Config['object_store'] {
  if (store.type !== 's3' || store.endpoint === undefined) return store;
  return { ...store, endpoint: redactUrl(store.endpoint) };
}

function redactPool(pool: PoolConfig): PoolConfig {
  return { ...pool, backends: pool.backends.map(withRedactedUrl) };
}

function withRedactedUrl<T extends { readonly url: string }>(gateway: T): T {
  return { ...gateway, url: redactUrl(gateway.url) };
}

function mapValues<T>(values: Readonly<Record<string, T>>, map: (value: T) => T) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

/**
 * Query parameters whose values are never secret. All others are hidden, because credentials have many
 * names (`sslpassword`, `api-key`, `sig`), and a logged secret cannot be taken back.
 */
const OPEN_PARAMETERS = new Set([
  'api-version',
  'application_name',
  'channel_binding',
  'client_encoding',
  'connect_timeout',
  'connection_limit',
  'dbname',
  'gssencmode',
  'host',
  'hostaddr',
  'keepalives',
  'keepalives_idle',
  'options',
  'pool_timeout',
  'port',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslrootcert',
  'statement_timeout',
  'target_session_attrs',
  'user',
]);

/** The URL without its secrets: `postgres://user:***@host/name`. */
export function redactUrl(url: string): string {
  if (!URL.canParse(url)) return url === '' ? '' : HIDDEN;
  const parsed = new URL(url);
  const hidden = [...parsed.searchParams.keys()].filter((name) => !OPEN_PARAMETERS.has(name));
  // A user name in an http(s) URL is usually a token.
  const isToken = /^https?:$/.test(parsed.protocol) && parsed.username !== '';
  if (parsed.password === '' && parsed.hash === '' && hidden.length === 0 && !isToken) return url;
  if (parsed.password !== '') parsed.password = HIDDEN;
  if (isToken) parsed.username = HIDDEN;
  if (parsed.hash !== '') parsed.hash = HIDDEN;
  for (const name of new Set(hidden)) parsed.searchParams.set(name, HIDDEN);
  return parsed.toString();
}
