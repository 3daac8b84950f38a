import type { Config } from '../../platform/config';
import { withKeys } from '../admin/key-database';
import { say } from '../output';

/** How the demo authenticates. */
export interface DemoAccess {
  /** The SDK requires a key, even if the server ignores it. */
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
}

const TENANT = 'demo';
/** The demo revokes its key at the end. A demo that is killed cannot, so the key expires as well. */
const KEY_LIFETIME_SEC = 24 * 3_600;

/**
 * Calls `work` with what the API's `auth.mode` requires: a key that is revoked afterwards, or the tenant
 * header. @throws postgres_unavailable, and what `work` throws
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
    const createdAtSec = nowSec();
    const expiresAtSec = createdAtSec + KEY_LIFETIME_SEC;
    return keys.create({
      tenant: TENANT,
      name: 'nightshift demo',
      expiresAtSec,
      nowSec: createdAtSec,
    });
  });
  say(`auth.mode is api_key: the demo creates the key ${record.id} and revokes it at the end`);
  try {
    return await work({ key, headers: {} });
  } finally {
    await withKeys({ dataDir }, (keys) => keys.revoke(record.id, nowSec()));
  }
}

function nowSec(): number {
  return Math.floor(Date.now() / 1000);
}
