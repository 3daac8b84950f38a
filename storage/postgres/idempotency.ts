import type { Pool, PoolClient } from 'pg';
import { inTransaction, query } from './sql';

/** A client's idempotency key, which is unique for its tenant and route. */
export interface KeyPlace {
  readonly tenant: string;
  /** Route of the request, such as `POST /v1/files`. */
  readonly route: string;
  readonly key: string;
  readonly nowSec: number;
}

/** A key with its request, which the client may repeat (docs/design/api-contract.md#idempotency). */
export interface IdempotencyKey extends KeyPlace {
  /** Digest of the request's parsed fields. */
  readonly fingerprint: string;
}

/**
 * The outcome of a request with a key: `made` if it created its object; `repeated` if the same request
 * created the object `id` before; `reused` if the key belongs to a different request.
 */
export type Once<T> =
  | { readonly kind: 'made'; readonly object: T }
  | { readonly kind: 'repeated'; readonly id: string }
  | { readonly kind: 'reused' };

const KEY_LIFE_SEC = 24 * 3600;

/**
 * Creates the object of a request in the transaction that takes its key, so that neither exists without
 * the other. A concurrent request with the same key waits in the database until this one has ended.
 * @throws postgres_unavailable, and what `make` throws
 */
export function once<T>(
  pool: Pool,
  { key, objectId }: { readonly key: IdempotencyKey; readonly objectId: string },
  make: (client: PoolClient) => Promise<T>,
): Promise<Once<T>> {
  return inTransaction(pool, async (client) => {
    const holder = await takeKey(client, key, objectId);
    if (holder === null) return { kind: 'made', object: await make(client) };
    if (holder.fingerprint !== key.fingerprint) return { kind: 'reused' };
    return { kind: 'repeated', id: holder.objectId };
  });
}

/** Whether a request with this key has created an object. @throws postgres_unavailable */
export async function isKeyTaken(
  client: PoolClient,
  { tenant, route, key, nowSec }: KeyPlace,
): Promise<boolean> {
  const taken = await query(
    client,
    `select 1 from idempotency_keys
     where tenant = $1 and route = $2 and key = $3
       and created_at > to_timestamp($4::bigint - $5::bigint)`,
    [tenant, route, key, nowSec, KEY_LIFE_SEC],
  );
  return taken.length > 0;
}

interface KeyHolder {
  readonly fingerprint: string;
  readonly objectId: string;
}

/** Takes the key and returns null if it was free or had expired; else returns its holder. */
async function takeKey(
  client: PoolClient,
  { tenant, route, key, fingerprint, nowSec }: IdempotencyKey,
  objectId: string,
): Promise<KeyHolder | null> {
  const taken = await query(
    client,
    `insert into idempotency_keys as k (tenant, route, key, fingerprint, object_id, created_at)
     values ($1, $2, $3, $4, $5, to_timestamp($6))
     on conflict (tenant, route, key) do update
       set fingerprint = excluded.fingerprint, object_id = excluded.object_id,
         created_at = excluded.created_at
       where k.created_at <= to_timestamp($6::bigint - $7::bigint)
     returning key`,
    [tenant, route, key, fingerprint, objectId, nowSec, KEY_LIFE_SEC],
  );
  if (taken.length > 0) return null;
  const [holder] = await query<KeyHolder>(
    client,
    `select fingerprint, object_id as "objectId" from idempotency_keys
     where tenant = $1 and route = $2 and key = $3`,
    [tenant, route, key],
  );
  return holder ?? null;
}
