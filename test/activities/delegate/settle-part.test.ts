import type { LineResult } from '../../../providers/provider';
import { useDatabase } from '../../support/postgres';
import { type JobWorld, jobWorld, type JobWorldOptions } from './job-world';

/** How lines end that no provider has answered (docs/design/delegation.md#leftovers). */

const database = useDatabase('provider_jobs', 'batches');
const worlds: JobWorld[] = [];

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

/** A world whose job was collected with these results. */
async function collected(
  results: (world: JobWorld) => LineResult[],
  options: JobWorldOptions = {},
): Promise<JobWorld> {
  const world = await jobWorld(database.pool, { lines: 3, ...options });
  worlds.push(world);
  await world.submit();
  world.provider.lines = results(world);
  for (const job of world.provider.jobs.values()) job.state = 'completed';
  await world.watch();
  await world.collect();
  return world;
}

const body = (text: string) => Buffer.from(text);

it('ends a line with the 5xx of its provider, and the others with a code', async () => {
  const error = { message: 'overloaded', type: 'server_error', param: null, code: null };
  const world = await collected(({ answer }) => [
    answer(0),
    answer(2, { status: 503, requestId: 'req-2', body: body(JSON.stringify({ error })) }),
  ]);
  expect(await world.settle()).toMatchObject({ next: 3, completed: 1, failed: 2, left: 'done' });
  const results = await world.results();
  expect(results.get(0)).toMatchObject({ response: { status_code: 200 } });
  expect(results.get(1)).toMatchObject({
    ...{ custom_id: 'l1', response: null },
    error: { code: 'provider_missing_result' },
  });
  expect(results.get(2)).toMatchObject({
    ...{ custom_id: 'l2', error: null },
    response: { status_code: 503, request_id: 'req-2', body: { error } },
  });
});

it('does not name the account in a 429', async () => {
  const error = { message: 'Limit of org-secret', type: 'tokens', code: 'rate_limit_exceeded' };
  const answer429 = { status: 429, body: body(JSON.stringify({ error })) };
  const world = await collected(({ answer }) => [answer(1, answer429)]);
  await world.settle();
  const line = (await world.results()).get(1);
  expect(line?.response?.body).toEqual({
    error: {
      message: 'The provider had no capacity or quota for this request.',
      ...{ type: 'tokens', param: null, code: 'rate_limit_exceeded' },
    },
  });
});

it('says which parameter of a line the provider does not take', async () => {
  const refused = (line: number) => (line === 1 ? '{"bad":1}' : '{}');
  const results = ({ answer }: JobWorld) => [answer(0), answer(2)];
  const world = await collected(results, { body: refused });
  expect(await world.settle()).toMatchObject({ next: 3, completed: 2, failed: 1 });
  expect((await world.results()).get(1)).toMatchObject({
    custom_id: 'l1',
    response: {
      status_code: 400,
      body: { error: { code: 'unsupported_parameter', param: 'bad' } },
    },
  });
});

it('changes nothing when it runs again', async () => {
  const world = await collected(({ answer }) => [answer(1, { status: 500 })]);
  const first = await world.settle();
  expect(await world.settle()).toEqual({ ...first, answered: 0 });
  expect(await world.journalled()).toHaveLength(3);
});

it.each([
  ['expired', 'provider_expired'],
  ['failed', 'provider_failed'],
  ['cancelled', 'provider_failed'],
] as const)('gives the lines of a job that is %s the code %s', async (state, code) => {
  const world = await jobWorld(database.pool, { lines: 1 });
  worlds.push(world);
  await world.submit();
  for (const job of world.provider.jobs.values()) job.state = state;
  await world.watch();
  await world.collect();
  await world.settle();
  expect((await world.results()).get(0)).toMatchObject({ response: null, error: { code } });
});

it('gives the lines of a job that is cancelled after its own timeout the code provider_expired', async () => {
  const world = await jobWorld(database.pool, { lines: 1, settings: { job_timeout: '1ms' } });
  worlds.push(world);
  await world.submit();
  await expect(world.watch()).rejects.toMatchObject({ type: 'provider_wait' });
  expect(world.provider.cancelled).toEqual(['remote-1']);
  for (const job of world.provider.jobs.values()) job.state = 'cancelled';
  await world.watch();
  await world.collect();
  await world.settle();
  expect(await world.row()).toMatchObject({ outcome: 'expired', providerStatus: 'cancelled' });
  const error = { code: 'provider_expired' };
  expect((await world.results()).get(0)).toMatchObject({ response: null, error });
});
