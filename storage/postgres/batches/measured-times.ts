import type { Pool } from 'pg';
import { query } from '../sql';

/** SQL: seconds since the batch was created. */
export const AGE_SEC =
  'extract(epoch from now() - coalesce(inserted_at, to_timestamp(created_at)))::float8';

/** A step of a batch that runs in one worker. */
export type MeasuredStep = 'ingestion' | 'finalization';

/**
 * Notes that `worker` begins a step, so that a later worker can tell what a killed one left. Returns the age
 * of the batch in seconds if this is the start of its first ingestion, else null. @throws postgres_unavailable
 */
export async function beginStep(
  pool: Pool,
  batchId: string,
  { step, worker }: { step: MeasuredStep; worker: string },
): Promise<number | null> {
  const [row] = await query<{ age: number; isFirst: boolean }>(
    pool,
    `update batches set step_worker = $2, step_began_at = clock_timestamp(),
       ingestion_started_at = case when $3 then coalesce(ingestion_started_at, now())
         else ingestion_started_at end
     where id = $1
     returning ${AGE_SEC} as age, $3 and ingestion_started_at = now() as "isFirst"`,
    [batchId, worker, step === 'ingestion'],
  );
  return row?.isFirst === true ? row.age : null;
}

/**
 * Notes the first request of a batch, `agoMs` before now. Returns the age that the batch had at that time, in
 * seconds; null if another process noted one before. @throws postgres_unavailable
 */
export async function noteFirstRequest(
  pool: Pool,
  batchId: string,
  agoMs: number,
): Promise<number | null> {
  const [row] = await query<{ age: number }>(
    pool,
    `update batches set first_request_at = now() - make_interval(secs => $2)
     where id = $1 and first_request_at is null
     returning greatest(0, ${AGE_SEC} - $2::float8) as age`,
    [batchId, agoMs / 1000],
  );
  return row?.age ?? null;
}
