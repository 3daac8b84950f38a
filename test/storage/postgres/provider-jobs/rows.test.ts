import { JOB_STEPS } from '../../../../core/delegation/job-steps';
import { showCounts } from '../../../../storage/postgres/progress-sql';
import {
  createProviderJobs,
  type ProviderJobs,
} from '../../../../storage/postgres/provider-jobs/repository';
import { createSweepRows } from '../../../../storage/postgres/sweep';
import { useDatabase } from '../../../support/postgres';
import { insertBatch } from '../../../support/rows';
import { leaseRequest, newJob, STAGED, uploadedJob } from './job-scene';

const database = useDatabase('batches', 'removed_batches', 'provider_jobs', 'chunk_progress');
let jobs: ProviderJobs;

beforeAll(() => {
  jobs = createProviderJobs(database.pool);
});

const END = { providerStatus: 'completed', outcome: 'completed', error: null } as const;

describe('the row of a job', () => {
  it('is inserted once, however many attempts open the job', async () => {
    const job = newJob('batch_1');
    const opened = await Promise.all([1, 2, 3, 4].map(() => jobs.open(job)));
    expect(new Set(opened.map(({ seq }) => seq)).size).toBe(1);
    expect(opened[0]).toMatchObject({ ...job, step: 'staging', externalId: null, lines: null });
  });

  it('keeps the first staged input and the first upload', async () => {
    const { id } = await jobs.open(newJob('batch_1'));
    await jobs.recordStaged(id, STAGED);
    await jobs.recordStaged(id, { ...STAGED, key: 'other', sentWindow: '48h' });
    await jobs.recordUpload(id, 'file-1');
    const row = await jobs.recordUpload(id, 'file-2');
    const { key: stagedKey, ...staged } = STAGED;
    expect(row).toMatchObject({ ...staged, stagedKey, upload: 'file-1', step: 'uploaded' });
  });

  it('goes through all steps to its release', async () => {
    const { id } = await uploadedJob(database.pool);
    await jobs.takeLease(leaseRequest(id));
    await jobs.recordCreated(id, { externalId: 'x', adopted: false });
    const counts = { total: 9, completed: 4, failed: 1 };
    await jobs.recordObservation(id, { providerStatus: 'in_progress', counts });
    expect(await jobs.find(id)).toMatchObject({ counts, providerStatus: 'in_progress' });
    const usage = { inputTokens: 5, cachedTokens: 1, outputTokens: 7 };
    expect(await jobs.recordEnd(id, { ...END, usage })).toMatchObject({
      ...{ step: 'ended', outcome: 'completed', counts, usage },
    });
    const found = { outcome: 'partial_complete', costUsd: 0.25 } as const;
    expect(await jobs.recordCollected(id, found)).toMatchObject({ step: 'collected', ...found });
    expect(await jobs.release(id)).toMatchObject({ step: 'released' });
  });

  it('changes no step by a late call', async () => {
    const { id } = await uploadedJob(database.pool);
    await jobs.abandon(id);
    await jobs.release(id);
    const released = await jobs.find(id);
    const error = { code: null, message: 'late' };
    await jobs.recordStaged(id, STAGED);
    await jobs.recordUpload(id, 'late');
    await jobs.recordObservation(id, { providerStatus: 'late' });
    await jobs.recordEnd(id, { ...END, error });
    await jobs.recordCollected(id, { outcome: 'failed', costUsd: 1 });
    await jobs.refuse(id, error);
    await jobs.abandon(id);
    expect(await jobs.find(id)).toEqual(released);
  });

  it('notes a refusal outside of a create call, but not while an attempt may create the job', async () => {
    const error = { code: 'token_limit_exceeded', message: 'enqueued\0 tokens' };
    const { id } = await uploadedJob(database.pool);
    await jobs.takeLease(leaseRequest(id));
    expect(await jobs.refuse(id, error)).toMatchObject({ step: 'creating', error: null });
    await jobs.recordCreated(id, { externalId: 'x', adopted: false });
    const refused = { step: 'refused', error: { ...error, message: 'enqueued\uFFFD tokens' } };
    expect(await jobs.refuse(id, error)).toMatchObject(refused);
  });

  it('counts status calls that fail in a row', async () => {
    const { id } = await uploadedJob(database.pool);
    expect([await jobs.recordPollFailure(id), await jobs.recordPollFailure(id)]).toEqual([1, 2]);
    await jobs.recordObservation(id, { providerStatus: 'running' });
    expect(await jobs.recordPollFailure(id)).toBe(1);
    expect(await jobs.recordPollFailure('job_0')).toBe(0);
  });

  it('may have every step that the rules know', async () => {
    const { id } = await jobs.open(newJob('batch_1'));
    for (const step of JOB_STEPS) {
      await database.pool.query('update provider_jobs set step = $2 where id = $1', [id, step]);
    }
  });
});

describe('the rows of jobs', () => {
  it('are read by model in the order of positions, generations and ordinals', async () => {
    const batchId = 'batch_1';
    const places = [
      { from: 100, generation: 0, ordinal: 1 },
      { from: 0, generation: 1, ordinal: 0 },
      { from: 0, generation: 0, ordinal: 0 },
      { from: 100, generation: 0, ordinal: 0 },
    ];
    for (const place of places) await jobs.open(newJob(batchId, place));
    await jobs.open(newJob(batchId, { safeModel: 'other' }));
    const rows = await jobs.ofModel(batchId, 'm');
    expect(rows.map(({ from, generation, ordinal }) => ({ from, generation, ordinal }))).toEqual([
      places[2],
      places[1],
      places[3],
      places[0],
    ]);
  });

  it('are listed for their own tenant only', async () => {
    const { id } = await jobs.open(newJob('batch_1', { tenant: 'mine' }));
    expect(await jobs.ofBatch('batch_1', 'mine')).toMatchObject([{ id }]);
    expect(await jobs.ofBatch('batch_1', 'yours')).toEqual([]);
  });

  it('outlive their batch until nothing of them is left at the provider', async () => {
    const batchId = await insertBatch(database.pool, { status: 'completed', completed_at: 1 });
    const kept = await uploadedJob(database.pool, { batchId });
    const gone = await uploadedJob(database.pool, { batchId });
    const open = await uploadedJob(database.pool);
    for (const { id } of [gone, open]) {
      await jobs.abandon(id);
      await jobs.release(id);
    }
    const sweep = createSweepRows(database.pool);
    await sweep.removeReleasedJobs(10);
    expect(await jobs.find(gone.id)).not.toBeNull();
    await sweep.removeBatches([batchId]);
    await sweep.removeReleasedJobs(10);
    expect(await jobs.find(gone.id)).toBeNull();
    expect(await jobs.find(kept.id)).not.toBeNull();
    expect(await jobs.find(open.id)).not.toBeNull();
  });
});

describe('the counts of a batch while its jobs run', () => {
  const seen = (completed: number, failed = 0) => ({
    providerStatus: 'in_progress',
    counts: { total: 90, completed, failed },
  });

  async function shown(batchId: string): Promise<unknown> {
    const text = 'select completed::int, failed::int from batches where id = $1';
    const { rows } = await database.pool.query<object>(text, [batchId]);
    return rows[0];
  }

  async function runningJobs(count: number) {
    const batchId = await insertBatch(database.pool, { status: 'in_progress', total: 1_000 });
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      const { id } = await uploadedJob(database.pool, { batchId });
      await jobs.takeLease(leaseRequest(id));
      await jobs.recordCreated(id, { externalId: `remote-${id}`, adopted: false });
      ids.push(id);
    }
    return { batchId, ids };
  }

  it('add up what providers have completed, and leave out what may run again elsewhere', async () => {
    const { batchId, ids } = await runningJobs(2);
    for (const id of ids) await jobs.recordObservation(id, seen(20, 3));
    expect(await shown(batchId)).toEqual({ completed: 40, failed: 0 });
  });

  it('never fall, and count no line twice when it is collected', async () => {
    const { batchId, ids } = await runningJobs(1);
    const [id = ''] = ids;
    await jobs.recordObservation(id, seen(60));
    await jobs.recordObservation(id, seen(50));
    expect(await shown(batchId)).toEqual({ completed: 60, failed: 0 });
    await jobs.recordEnd(id, { ...END, ...seen(90) });
    await database.pool.query(
      `insert into chunk_progress (batch_id, safe_model, from_pos, to_pos, epoch, worker, completed)
       values ($1, 'm', 0, 90, 1, 'w', 70)`,
      [batchId],
    );
    await showCounts(database.pool, [batchId]);
    expect(await shown(batchId)).toEqual({ completed: 70, failed: 0 });
  });

  it('believe no provider that counts more lines than it was given', async () => {
    const { batchId, ids } = await runningJobs(1);
    await jobs.recordObservation(ids[0] ?? '', seen(1_000_000));
    expect(await shown(batchId)).toEqual({ completed: STAGED.lines, failed: 0 });
  });
});
