import { Registry } from 'prom-client';
import type { OpenProvider } from '../../activities/delegate/deps';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import type { MarkedJob, Provider } from '../../providers/provider';
import {
  createProviderJobs,
  type ProviderJobs,
} from '../../storage/postgres/provider-jobs/repository';
import { searchOrphans } from '../../workers/orphan-search';
import { ACCOUNT, uploadedJob } from '../storage/postgres/provider-jobs/job-scene';
import { useDatabase } from '../support/postgres';
import { until } from '../support/until';

const database = useDatabase('batches', 'provider_jobs');
let jobs: ProviderJobs;
beforeAll(() => {
  jobs = createProviderJobs(database.pool);
});

interface Scene {
  readonly marked: MarkedJob[];
  readonly cancelsOrphans?: boolean;
  readonly graceMs?: number;
  readonly isAway?: boolean;
}

/** Searches until `rounds` lists were read; returns the ids that were cancelled and the last count. */
async function search({ marked, cancelsOrphans = false, graceMs = 0, isAway = false }: Scene) {
  const cancelled: string[] = [];
  const stores: string[] = [];
  const failure = { code: null, message: 'away', status: 500, retryAfterMs: null };
  const api = {
    listMarked: async ({ storeId }: { storeId: string }) => {
      stores.push(storeId);
      return isAway ? { outcome: 'transient', failure } : { outcome: 'ok', value: marked };
    },
    cancel: async (id: string) => {
      cancelled.push(id);
      return { outcome: 'ok', value: 'requested' };
    },
  } as unknown as Provider;
  const provider = {
    ...{ name: 'openai', account: ACCOUNT, api, settleMs: 0, isExclusive: false },
    config: { cancel_orphans: cancelsOrphans },
  } as unknown as OpenProvider;
  const metrics = createWorkerMetrics(new Registry());
  const searching = searchOrphans({
    jobs,
    store: { storeId: async () => 'store-1' },
    providers: [provider, { ...provider, name: 'no-marker', api: {} as Provider }],
    observer: { called: () => undefined },
    metrics,
    logger: { warn: () => undefined, error: () => undefined } as never,
    ...{ everyMs: 10, graceMs },
  });
  await until(() => stores.length >= 3, 5_000, 'three searches');
  await searching.close();
  expect(new Set(stores)).toEqual(new Set(['store-1']));
  const [shown] = (await metrics.providerJobsOrphaned.get()).values;
  return { cancelled: [...new Set(cancelled)], count: shown?.value };
}

/** A job that PostgreSQL knows with this id at the provider. */
async function known(externalId: string): Promise<MarkedJob> {
  const { id } = await uploadedJob(database.pool);
  await jobs.recordCreated(id, { externalId, adopted: false });
  return { externalId, jobId: id };
}

const LOST: MarkedJob = { externalId: 'lost', jobId: 'job_lost' };

describe('the search for orphans', () => {
  it('counts jobs whose row is gone or has another job, and cancels none by default', async () => {
    const { jobId } = await known('first');
    const surplus = { externalId: 'second', jobId };
    // It may adopt a job of its own only.
    await uploadedJob(database.pool);
    expect(await search({ marked: [LOST, surplus] })).toEqual({ cancelled: [], count: 2 });
  });

  it('leaves out jobs that rows know, or that a row may still adopt', async () => {
    const { id } = await uploadedJob(database.pool);
    const marked = [await known('x'), { externalId: 'unanswered', jobId: id }];
    expect(await search({ marked, cancelsOrphans: true })).toEqual({ cancelled: [], count: 0 });
    await jobs.abandon(id);
    expect(await search({ marked })).toMatchObject({ count: 0 });
    await jobs.release(id);
    expect(await search({ marked })).toMatchObject({ count: 1 });
  });

  it('cancels orphans if the settings say so', async () => {
    const marked = [LOST, await known('x')];
    expect(await search({ marked, cancelsOrphans: true })).toEqual({
      cancelled: ['lost'],
      count: 1,
    });
  });

  it('cancels no orphan before it was seen for the grace', async () => {
    const scene = { marked: [LOST], cancelsOrphans: true, graceMs: 60_000 };
    expect(await search(scene)).toEqual({ cancelled: [], count: 1 });
  });

  it('counts nothing while the provider does not answer', async () => {
    expect(await search({ marked: [LOST], isAway: true })).toEqual({ cancelled: [] });
  });
});
