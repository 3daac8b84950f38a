import { MockActivityEnvironment } from '@temporalio/testing';
import type { OpenedParts, OpenPartsInput } from '../../../activities/delegate/contract';
import { createOpenParts } from '../../../activities/delegate/open-parts';
import { configSchema } from '../../../platform/config-schema';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import type { JobError } from '../../../storage/postgres/provider-jobs/job-row';
import { createProviderJobs } from '../../../storage/postgres/provider-jobs/repository';
import { useDatabase } from '../../support/postgres';
import { insertBatch } from '../../support/rows';

/** Which jobs run next, decided from rows (docs/design/delegation.md#generations). */

const database = useDatabase('provider_jobs', 'batches');
const HOUR_MS = 3_600_000;
const GATEWAY = {
  ...{ url: 'http://127.0.0.1:1', request_timeout: '5m', max_retries: 3 },
  ...{ initial_backoff: '1s', max_backoff: '60s' },
};
const PROVIDERS = { far: { type: 'openai', url: 'http://127.0.0.1:1', max_lines: 50 } };
const DELEGATES = { m: { provider: 'far', model: 'm-far' } };

async function world(settings: object = { providers: PROVIDERS, delegates: DELEGATES }) {
  const nowSec = Math.floor(Date.now() / 1000);
  const times = { created_at: nowSec, expires_at: nowSec + 86_400 };
  const batchId = await insertBatch(database.pool, { status: 'in_progress', ...times });
  const jobs = createProviderJobs(database.pool);
  const openParts = createOpenParts({
    ...{
      jobs,
      batches: createBatchRepository(database.pool),
      config: configSchema.parse(settings),
    },
    logger: { warn: () => undefined } as never,
    accountOf: () => 'account-1',
  });
  const input: OpenPartsInput = {
    ...{ batchId, planNonce: 'aaaaaaaaaaaaaaaa', tenant: 't', endpoint: '/v1/chat/completions' },
    ...{ inputKey: 'files/t/input', model: 'm', safe: 'm', provider: 'far' },
    deadlineMs: Date.now() + 24 * HOUR_MS,
    giveUpAtMs: Date.now() + 20 * HOUR_MS,
    harvestGraceMs: 60_000,
    open: [{ from: 0, to: 100 }],
    unanswered: null,
  };
  const open = (over: Partial<OpenPartsInput> = {}): Promise<OpenedParts> =>
    new MockActivityEnvironment().run(openParts, { ...input, ...over });
  return { jobs, open, rows: () => jobs.ofModel(batchId, 'm') };
}

/** Ends every job with a refusal. */
async function refuseAll({ jobs, rows }: Awaited<ReturnType<typeof world>>, error: JobError) {
  for (const { id } of await rows()) await jobs.refuse(id, error);
}

it('makes a row for each part, and the same rows when it is asked again', async () => {
  const { open, rows } = await world();
  const first = await open();
  expect(first.jobs.map(({ from, to }) => [from, to])).toEqual([
    [0, 50],
    [50, 100],
  ]);
  expect(await open()).toEqual(first);
  expect(await rows()).toMatchObject([
    { from: 0, to: 50, step: 'staging', providerModel: 'm-far', account: 'account-1' },
    { from: 50, to: 100, step: 'staging' },
  ]);
});

it('makes no second row if two attempts decide at once', async () => {
  const { open, rows } = await world();
  const [one, other] = await Promise.all([open(), open()]);
  expect(one).toEqual(other);
  expect(await rows()).toHaveLength(2);
});

it('repeats jobs that we know had no quota, whatever words the provider uses', async () => {
  const none = { code: 'token_limit_exceeded', message: 'no quota', reason: 'quota' as const };
  const repeated = await world();
  await repeated.open();
  await refuseAll(repeated, none);
  expect((await repeated.open()).jobs).toMatchObject([{ ordinal: 1 }, { ordinal: 1 }]);

  const refused = await world();
  await refused.open();
  await refuseAll(refused, { code: 'quota', message: 'the same word' });
  expect((await refused.open()).jobs).toEqual([]);
});

it('begins nothing without its settings, or while the batch stops, and returns what runs', async () => {
  const { open } = await world();
  const { jobs } = await open({ open: [{ from: 0, to: 10 }] });
  expect((await open({ stopping: true })).jobs).toEqual(jobs);
  const unknown = await world({ model_gateways: { m: GATEWAY } });
  expect((await unknown.open()).jobs).toEqual([]);
  expect(await unknown.rows()).toEqual([]);
});

it.each([
  ['the last answers would have come', { giveUpAtMs: Date.now() - HOUR_MS }],
  ['the workflow waits no longer', { isOver: true }],
])('gives up what runs when %s', async (_, over) => {
  const { open, rows } = await world();
  await open();
  expect((await open(over)).jobs).toEqual([]);
  expect(await rows()).toMatchObject([{ step: 'abandoned' }, { step: 'abandoned' }]);
});

it('still returns what runs while cancelled jobs may end', async () => {
  const { open } = await world();
  const { jobs } = await open();
  expect((await open({ giveUpAtMs: Date.now() - 1_000 })).jobs).toEqual(jobs);
});
