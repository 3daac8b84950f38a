import type { Pool, PoolClient } from 'pg';
import { OPEN_STATUSES } from '../../core/batch/status';
import { NightshiftError } from '../../core/errors';
import { type Database, inTransaction, query } from './sql';

/** Limits of each tenant; an absent field means no limit (docs/design/api-contract.md#tenant-quotas). */
export interface TenantLimits {
  /** Open batches. */
  readonly maxBatches?: number | undefined;
  /** Bytes of all its files, including result files and the declared sizes of open uploads. */
  readonly maxStoredBytes?: number | undefined;
  /** Uploaded files and open uploads. Result files do not count. */
  readonly maxFiles?: number | undefined;
  /** Open uploads. */
  readonly maxUploads?: number | undefined;
  /** Parts of one upload. */
  readonly maxUploadParts?: number | undefined;
}

/** One more file or upload that a tenant wants to store. */
export interface StorageRequest {
  readonly tenant: string;
  readonly bytes: number;
  readonly nowSec: number;
}

const OPEN = [...OPEN_STATUSES];

/**
 * Admits one more file, in the transaction that stores it. Other transactions of the tenant wait, so that
 * together they never exceed the limits. Returns how many bytes may be stored, including this file.
 * @throws quota_exceeded, postgres_unavailable
 */
export async function admitFile(
  client: PoolClient,
  request: StorageRequest,
  limits: TenantLimits,
): Promise<number> {
  if (limits.maxFiles === undefined && limits.maxStoredBytes === undefined) return Infinity;
  await lockTenant(client, request.tenant);
  await admitOneMore(client, request, limits);
  return admitBytes(client, request, limits);
}

/** Admits one more upload, like {@link admitFile}. @throws quota_exceeded, postgres_unavailable */
export async function admitUpload(
  client: PoolClient,
  request: StorageRequest,
  limits: TenantLimits,
): Promise<void> {
  const { tenant, nowSec } = request;
  if (limits.maxUploads !== undefined) {
    await lockTenant(client, tenant);
    const open = await countUploads(client, { tenant, nowSec, most: limits.maxUploads });
    if (open >= limits.maxUploads) {
      throw quotaExceeded(
        `You may have ${limits.maxUploads} open uploads: complete or cancel some.`,
      );
    }
  }
  await admitFile(client, request, limits);
}

async function admitOneMore(
  client: PoolClient,
  { tenant, nowSec }: StorageRequest,
  { maxFiles: most }: TenantLimits,
): Promise<void> {
  if (most === undefined) return;
  const uploads = await countUploads(client, { tenant, nowSec, most });
  const [files] = await query<{ count: number }>(
    client,
    `select count(*) as count from (
       select 1 from files where tenant = $1 and batch_id is null and deleted_at is null
         and (expires_at is null or expires_at > $2) limit $3) found`,
    [tenant, nowSec, most],
  );
  if ((files?.count ?? 0) + uploads < most) return;
  throw quotaExceeded(
    `You may have ${most} files, open uploads included: delete files that you do not need.`,
  );
}

/** The number of open uploads; stops counting at `most`. */
async function countUploads(
  client: PoolClient,
  { tenant, nowSec, most }: { tenant: string; nowSec: number; most: number },
): Promise<number> {
  const [open] = await query<{ count: number }>(
    client,
    `select count(*) as count from (
       select 1 from uploads where tenant = $1 and status = 'pending' and expires_at > $2 limit $3) found`,
    [tenant, nowSec, most],
  );
  return open?.count ?? 0;
}

async function admitBytes(
  client: PoolClient,
  { tenant, bytes, nowSec }: StorageRequest,
  { maxStoredBytes: max }: TenantLimits,
): Promise<number> {
  if (max === undefined) return Infinity;
  const [stored] = await query<{ bytes: number }>(
    client,
    `select (
       (select coalesce(sum(bytes), 0) from files
        where tenant = $1 and deleted_at is null and (expires_at is null or expires_at > $2))
       + (select coalesce(sum(bytes), 0) from uploads
          where tenant = $1 and status = 'pending' and expires_at > $2))::bigint as bytes`,
    [tenant, nowSec],
  );
  const before = stored?.bytes ?? 0;
  if (before + bytes <= max) return max - before;
  throw quotaExceeded(
    `You may store ${max} bytes and have stored ${before}; this file needs ${bytes} more: ` +
      'delete files that you do not need.',
  );
}

function quotaExceeded(message: string): NightshiftError {
  return new NightshiftError('quota_exceeded', message, { apiCode: 'insufficient_quota' });
}

/** A tenant's limit of open batches, and how many more it may open. */
export interface BatchQuota {
  readonly limit: number;
  readonly remaining: number;
}

/** The quota of a tenant; null if there is no limit. @throws postgres_unavailable */
export async function batchQuota(
  database: Database,
  tenant: string,
  { maxBatches: limit }: TenantLimits,
): Promise<BatchQuota | null> {
  if (limit === undefined) return null;
  const [open] = await query<{ count: number }>(
    database,
    `select count(*) as count from batches where tenant = $1 and status = any($2)`,
    [tenant, OPEN],
  );
  return { limit, remaining: Math.max(0, limit - (open?.count ?? 0)) };
}

/** Admits one more batch, like {@link admitFile}. @throws rate_limited, postgres_unavailable */
export async function admitBatch(
  client: PoolClient,
  tenant: string,
  limits: TenantLimits,
): Promise<void> {
  if (limits.maxBatches === undefined) return;
  await lockTenant(client, tenant);
  const quota = await batchQuota(client, tenant, limits);
  if (quota === null || quota.remaining > 0) return;
  const message = `You may have ${quota.limit} batches at a time: try again when one of them has ended.`;
  throw new NightshiftError('rate_limited', message, { apiCode: 'rate_limit_exceeded' });
}

/**
 * Adds the requests of a batch to the waiting requests of its tenant; false if that would exceed the limit.
 * A stopped batch sends nothing and is always admitted.
 */
export function enqueueRequests(
  pool: Pool,
  { batchId, requests, max }: { batchId: string; requests: number; max: number | undefined },
): Promise<boolean> {
  if (max === undefined) return Promise.resolve(true);
  return inTransaction(pool, async (client) => {
    const [row] = await query<{ tenant: string; isStopped: boolean }>(
      client,
      `select tenant, stop_cause is not null as "isStopped" from batches where id = $1`,
      [batchId],
    );
    if (row === undefined || row.isStopped) return true;
    await lockTenant(client, row.tenant);
    const [waiting] = await query<{ requests: number }>(
      client,
      `select coalesce(sum(greatest(total - completed - failed, 0)), 0)::bigint as requests
       from batches where tenant = $1 and status = any($2) and id <> $3`,
      [row.tenant, OPEN, batchId],
    );
    if ((waiting?.requests ?? 0) + requests > max) return false;
    const text = `update batches set total = $2 where id = $1 and status = 'validating'`;
    await query(client, text, [batchId, requests]);
    return true;
  });
}

/** The first key of our advisory locks, an arbitrary number; the second key is a hash of the tenant. */
const LOCK = 720_511;

/** Makes the admissions of one tenant run one after the other, until the transaction ends. */
async function lockTenant(client: PoolClient, tenant: string): Promise<void> {
  await query(client, `select pg_advisory_xact_lock($1, hashtext($2))`, [LOCK, tenant]);
}
