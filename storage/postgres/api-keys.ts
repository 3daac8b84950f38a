import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Pool } from 'pg';
import { query } from './sql';

/** A key without its secret. Times in Unix seconds. */
export interface ApiKeyRecord {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly createdAtSec: number;
  readonly expiresAtSec: number | null;
  readonly revokedAtSec: number | null;
  /** To the minute; null if it was never used. */
  readonly lastUsedAtSec: number | null;
}

/** A key to be created. */
export interface NewApiKey {
  readonly tenant: string;
  /** A label for people. */
  readonly name: string;
  readonly expiresAtSec: number | null;
  readonly nowSec: number;
}

/** API keys of tenants (docs/design/read-model.md#api-keys). All methods: @throws postgres_unavailable */
export interface ApiKeyRepository {
  /** Creates a key. `key` is returned only here; the database keeps its hash. */
  create(key: NewApiKey): Promise<{ readonly key: string; readonly record: ApiKeyRecord }>;
  /** The tenant of a valid key; null if the key is unknown, revoked, or expired. */
  authenticate(key: string, nowSec: number): Promise<{ readonly tenant: string } | null>;
  /** All keys, or those of one tenant, newest first. */
  list(tenant?: string): Promise<ApiKeyRecord[]>;
  /** Revokes a key; returns when it was revoked first, or null if there is no key with this id. */
  revoke(id: string, nowSec: number): Promise<number | null>;
}

const SHAPE = /^nsk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/;
const LAST_USE_STEP_SEC = 60;
/** Stands in for the hash of an unknown key, so that both comparisons take the same time. */
const NO_KEY_HASH = Buffer.alloc(32);
const COLUMNS = `id, tenant, name, created_at as "createdAtSec", expires_at as "expiresAtSec",
  revoked_at as "revokedAtSec", last_used_at as "lastUsedAtSec"`;

/** {@link ApiKeyRepository} over a pool that the caller ends. */
export function createApiKeyRepository(pool: Pool): ApiKeyRepository {
  return {
    create: (key) => createKey(pool, key),
    authenticate: (key, nowSec) => authenticate(pool, key, nowSec),
    list: (tenant) => {
      const text = `select ${COLUMNS} from api_keys
        where $1::text is null or tenant = $1 order by created_at desc, id`;
      return query<ApiKeyRecord>(pool, text, [tenant ?? null]);
    },
    revoke: async (id, nowSec) => {
      const text = `update api_keys set revoked_at = coalesce(revoked_at, $2) where id = $1
        returning revoked_at as "revokedAtSec"`;
      const [row] = await query<{ revokedAtSec: number }>(pool, text, [id, nowSec]);
      return row?.revokedAtSec ?? null;
    },
  };
}

async function createKey(pool: Pool, { tenant, name, expiresAtSec, nowSec }: NewApiKey) {
  const id = randomBytes(8).toString('hex');
  const key = `nsk_${id}_${randomBytes(32).toString('base64url')}`;
  await query(
    pool,
    `insert into api_keys (id, hash, tenant, name, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6)`,
    [id, hashOf(key), tenant, name, nowSec, expiresAtSec],
  );
  const record = { id, tenant, name, createdAtSec: nowSec, expiresAtSec };
  return { key, record: { ...record, revokedAtSec: null, lastUsedAtSec: null } };
}

interface FoundKey extends ApiKeyRecord {
  readonly hash: Buffer;
}

/** Finds the row by its id, then compares digests in constant time, even if there is no row. */
async function authenticate(
  pool: Pool,
  key: string,
  nowSec: number,
): Promise<{ readonly tenant: string } | null> {
  const id = SHAPE.exec(key)?.[1];
  const [row] =
    id === undefined
      ? []
      : await query<FoundKey>(pool, `select ${COLUMNS}, hash from api_keys where id = $1`, [id]);
  const isTheKey = timingSafeEqual(hashOf(key), row?.hash ?? NO_KEY_HASH);
  if (row === undefined || !isTheKey || row.revokedAtSec !== null) return null;
  if (row.expiresAtSec !== null && row.expiresAtSec <= nowSec) return null;
  if ((row.lastUsedAtSec ?? 0) <= nowSec - LAST_USE_STEP_SEC) await noteUse(pool, row.id, nowSec);
  return { tenant: row.tenant };
}

/** At most once a minute for each key: a write for every request would cost too much. */
async function noteUse(pool: Pool, id: string, nowSec: number): Promise<void> {
  const text = `update api_keys set last_used_at = greatest(last_used_at, $2) where id = $1`;
  await query(pool, text, [id, nowSec]);
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
