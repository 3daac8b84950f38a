import type { Config } from './config-schema';

const HIDDEN = '***';

/** A copy that may be printed or logged: keys and passwords are replaced by `***`. */
export function redactConfig(config: Config): Config {
  const { api_key: apiKey, ...temporal } = config.temporal;
  const { otlp_endpoint: otlp } = config.tracing;
  return {
    ...config,
    temporal: { ...temporal, ...(apiKey === undefined ? {} : { api_key: HIDDEN }) },
    postgres: { url: redactUrl(config.postgres.url) },
    tracing: otlp === undefined ? {} : { otlp_endpoint: redactUrl(otlp) },
  };
}

/** `postgres://user:***@host/name`: the same address without its password. */
export function redactUrl(url: string): string {
  if (!URL.canParse(url)) return url === '' ? '' : HIDDEN;
  const parsed = new URL(url);
  const isInQuery = parsed.searchParams.has('password');
  if (parsed.password === '' && !isInQuery) return url;
  if (parsed.password !== '') parsed.password = HIDDEN;
  if (isInQuery) parsed.searchParams.set('password', HIDDEN);
  return parsed.toString();
}
