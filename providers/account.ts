import { createHash } from 'node:crypto';

/** What tells accounts apart. Entries of the configuration and settings of adapters have these members. */
export interface AccountAddress {
  readonly type: string;
  readonly url: string;
  readonly project?: string | undefined;
  readonly location?: string | undefined;
  readonly region?: string | undefined;
}

/**
 * A fingerprint of the account that the settings lead to: 16 hex digits. Jobs belong to an account, so an entry
 * that was pointed at another address cannot take over the jobs of the one before. The key does not count,
 * because it may rotate.
 */
export function accountOf({ type, url, ...scope }: AccountAddress): string {
  const address = new URL(url).href.replace(/\/$/, '');
  const parts = (['project', 'location', 'region'] as const).flatMap((name) =>
    scope[name] === undefined ? [] : [`${name}=${scope[name]}`],
  );
  const text = [type, address, ...parts].join('\n');
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
