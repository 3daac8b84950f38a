import type { Config } from './config-schema';

const HIDDEN = '***';

/** A copy that may be printed or logged: keys and passwords are replaced by `***`. */
export function redactConfig(config: Config): Config {
  const { api_key: apiKey, ...temporal } = config.temporal;
  return {
    ...config,
    temporal: { ...temporal, ...(apiKey === undefined ? {} : { api_key: HIDDEN }) },
    postgres: { url: redactUrl(config.postgres.url) },
  };
}

/** `postgres://user:***@host/name`: the same address without its password. */
export function redactUrl(url: string): string {
  if (!URL.canParse(url)) return url === '' ? '' : HIDDEN;
  const parsed = new URL(url);
  if (parsed.password !== '') parsed.password = HIDDEN;
  if (parsed.searchParams.has('password')) parsed.searchParams.set('password', HIDDEN);
  return parsed.toString();
}
