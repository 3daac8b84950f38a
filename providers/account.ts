import { createHash } from 'node:crypto';
import type { ProviderSettings } from './provider-settings';

/**
 * A fingerprint of the account that the settings lead to: 16 hex digits. Jobs belong to an account, so an entry
 * that was pointed at another address cannot take over the jobs of the one before. The key does not count,
 * because it may rotate.
 */
export function accountOf({ type, url }: Pick<ProviderSettings, 'type' | 'url'>): string {
  const address = new URL(url).href.replace(/\/$/, '');
  return createHash('sha256').update(`${type}\n${address}`).digest('hex').slice(0, 16);
}
