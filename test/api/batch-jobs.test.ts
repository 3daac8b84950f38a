import { createProviderJobs } from '../../storage/postgres/provider-jobs/repository';
import {
  leaseRequest,
  newJob,
  STAGED,
  uploadedJob,
} from '../storage/postgres/provider-jobs/job-scene';
import { openTestApi, type TestApi } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';
import { insertBatch } from '../support/rows';

let api: TestApi;
beforeAll(async () => {
  const config = { providers: { openai: { type: 'openai', url: 'http://127.0.0.1:1/v1' } } };
  api = await openTestApi({ auth: { mode: 'header' }, config });
}, POSTGRES_START_MS);
afterAll(() => api.close());

const jobsOf = (batchId: string, tenant = 't') =>
  api.call({
    method: 'GET',
    url: `/v1/nightshift/batches/${batchId}/jobs`,
    headers: { 'x-maas-username': tenant },
  });

describe('the jobs of a batch', () => {
  it('are an empty list if no model is delegated', async () => {
    const answer = await jobsOf(await insertBatch(api.database.pool));
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ...{ object: 'list', data: [], first_id: null, last_id: null, has_more: false },
    });
  });

  it('are listed in the order in which they were made, with every key', async () => {
    const { pool } = api.database;
    const jobs = createProviderJobs(pool);
    const { id, batchId } = await uploadedJob(pool);
    await jobs.takeLease(leaseRequest(id));
    await jobs.recordCreated(id, { externalId: 'batch_7', adopted: false });
    const counts = { total: 90, completed: 88, failed: 1 };
    const usage = { inputTokens: 5, cachedTokens: 1, outputTokens: 7 };
    const end = { providerStatus: 'completed', outcome: 'completed', error: null } as const;
    await jobs.recordEnd(id, { ...end, counts, usage });
    await jobs.recordCollected(id, { outcome: 'partial_complete', costUsd: 0.25 });
    const { id: second } = await jobs.open(newJob(batchId, { generation: 1 }));
    const { body } = await jobsOf(batchId);
    expect(body.data[0]).toEqual({
      ...{ id, object: 'batch.job', batch_id: batchId, model: 'gpt', provider: 'openai' },
      ...{ status: 'partial_complete', provider_status: 'completed', external_id: 'batch_7' },
      ...{ provider_type: 'openai', external_input_id: `file-${id}` },
      ...{ generation: 0, request_counts: counts, cost: 0.25, poll_failures: 0, error: null },
      usage: {
        ...{ input_tokens: 5, input_tokens_details: { cached_tokens: 1 } },
        ...{ output_tokens: 7, total_tokens: 12 },
      },
      ...{ created_at: expect.any(Number), submitted_at: expect.any(Number) },
      ended_at: expect.any(Number),
    });
    expect(Math.abs(body.data[0].created_at - Date.now() / 1000)).toBeLessThan(600);
    expect(body.data[1]).toMatchObject({
      id: second,
      status: 'pending',
      generation: 1,
      cost: null,
    });
    expect(body).toMatchObject({ first_id: id, last_id: second, has_more: false });
  });

  it('have as many requests as were sent while the provider does not count them', async () => {
    const { batchId } = await uploadedJob(api.database.pool);
    const { body } = await jobsOf(batchId);
    expect(body.data[0].request_counts).toEqual({ total: STAGED.lines, completed: 0, failed: 0 });
  });

  it.each([
    ['token_limit_exceeded', 'token_limit_exceeded'],
    ['Quota of org-Acme', null],
    [null, null],
  ])(
    'show an error with the code %s as %s, and none of the words of the provider',
    async (code, shown) => {
      const { pool } = api.database;
      const { id, batchId } = await uploadedJob(pool);
      await createProviderJobs(pool).refuse(id, { code, message: 'org-Acme has no quota' });
      const { body } = await jobsOf(batchId);
      expect(body.data[0]).toMatchObject({
        status: 'failed',
        error: { code: shown, message: 'The provider refused the job.' },
      });
      expect(JSON.stringify(body)).not.toContain('Acme');
    },
  );

  it('that were given up stay failed after the provider has completed them', async () => {
    const { pool } = api.database;
    const jobs = createProviderJobs(pool);
    const { id, batchId } = await uploadedJob(pool);
    await jobs.recordCreated(id, { externalId: 'batch_8', adopted: false });
    await jobs.recordEnd(id, { providerStatus: 'completed', outcome: 'completed', error: null });
    await jobs.abandon(id);
    const given = {
      status: 'failed',
      error: { code: null, message: expect.stringMatching(/given up/) },
    };
    expect((await jobsOf(batchId)).body.data[0]).toMatchObject(given);
    await jobs.release(id);
    expect((await jobsOf(batchId)).body.data[0]).toMatchObject(given);
  });

  it('do not exist for another tenant', async () => {
    const { batchId } = await uploadedJob(api.database.pool);
    const [foreign, unknown] = [
      await jobsOf(batchId, 'bob'),
      await jobsOf(`batch_${'0'.repeat(32)}`),
    ];
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    expect(JSON.stringify(foreign.body).replace(batchId, '')).toBe(
      JSON.stringify(unknown.body).replace(`batch_${'0'.repeat(32)}`, ''),
    );
  });
});
