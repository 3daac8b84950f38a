import type { Config } from '../../platform/config';
import { withKeys } from '../admin/key-database';
import { say } from '../output';

/** What the demo shows at the API's door. */
export interface DemoAccess {
  /** The SDK insists on one, whatever the mode. */
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
}

const TENANT = 'demo';
/** The key is revoked with the end of the demo; this is for one that was killed. */
const KEY_LIFE_SEC = 24 * 3_600;

/**
 * Works with what the API's `auth.mode` asks for: a key that lives as long as the work, or the header
 * with the tenant. @throws postgres_unavailable, and what `work` throws
 */
export async function withAccess<T>(
  { auth, dataDir }: { readonly auth: Config['auth']; readonly dataDir: string },
  work: (access: DemoAccess) => Promise<T>,
): Promise<T> {
  if (auth.mode !== 'api_key') {
    const headers = auth.mode === 'header' ? { [auth.tenant_header]: TENANT } : {};
    return work({ key: 'demo', headers });
  }
  const { key, record } = await withKeys({ dataDir }, (keys) => {
    const nowSec = now();
    const expiresAtSec = nowSec + KEY_LIFE_SEC;
    return keys.create({ tenant: TENANT, name: 'nightshift demo', expiresAtSec, nowSec });
  });
  say(`auth.mode is api_key: the demo uses the key ${record.id}, which is revoked at its end`);
  try {
    return await work({ key, headers: {} });
  } finally {
    await withKeys({ dataDir }, (keys) => keys.revoke(record.id, now()));
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
