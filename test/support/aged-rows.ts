import type { Client, Pool } from 'pg';

/** Longer than reconcile leaves a batch alone after its start, in case visibility is late. */
const BATCH_AGE = '1 minute';
/** Longer than a worker counts as live after an announcement (docs/design/execution.md#model-routes). */
const ROUTES_AGE = '31 seconds';

/** Makes every batch look started a minute ago. Otherwise reconcile would act on a new one in its next cycle. */
export async function ageBatches(postgres: Client | Pool): Promise<void> {
  await postgres.query(
    `update batches set workflow_started_at = workflow_started_at - interval '${BATCH_AGE}'`,
  );
}

/** Makes every announced route too old to count. Live workers announce theirs again within seconds. */
export async function ageRoutes(postgres: Client | Pool): Promise<void> {
  await postgres.query(`update worker_routes set seen_at = seen_at - interval '${ROUTES_AGE}'`);
}
