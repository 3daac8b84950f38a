import { TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';
import { FakeBatch, untilCancelled, type FakeBatchOptions } from './fake-batch';
import { FakeDelegation, type FakeDelegationOptions } from './fake-delegation';
import { SCENARIOS, type Scenario } from './scenarios';
import { type ScenarioPlayer, startScenarioPlayer } from './play-scenario';

/** A model that goes through a provider, from the workflow's side (docs/design/delegation.md#lanes). */

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

const LINES = 30;

async function run(
  options: FakeDelegationOptions,
  batchOptions: FakeBatchOptions = {},
  drive?: (scene: { batch: FakeBatch; provider: FakeDelegation }) => Scenario['drive'],
) {
  const provider = new FakeDelegation(options);
  const batch = new FakeBatch({
    models: [{ model: 'far', entries: LINES }],
    delegated: { far: provider },
    ...batchOptions,
  });
  const driver = drive?.({ batch, provider });
  const played = await player.play({ batch, ...(driver === undefined ? {} : { drive: driver }) });
  return { ...played, batch, provider };
}

async function play(name: string) {
  const scenario = SCENARIOS[name]?.();
  if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
  const played = await player.play(scenario);
  return { ...played, batch: scenario.batch, provider: scenario.batch.options.delegated?.['far'] };
}

/** How often each line was answered. */
function answersOf({ answered }: FakeBatch): number[] {
  return [...answered.values()];
}

it('runs in parts, each submitted, watched and collected, in few events', async () => {
  const { result, batch, provider, histories } = await run({ maxLines: 10, looks: 4 });
  expect(result).toMatchObject({ status: 'completed', completed: LINES });
  expect(answersOf(batch)).toEqual(Array(LINES).fill(1));
  expect(provider.rows.map(({ from, to }) => [from, to])).toEqual([
    [0, 10],
    [10, 20],
    [20, 30],
  ]);
  expect(provider.submitted).toHaveLength(3);
  expect(batch.chunks).toEqual([]);
  expect(provider.watched).toHaveLength(12);
  // The whole history of three jobs, with everything else that a batch does.
  expect(histories[0]?.events?.length).toBeLessThan(3 * 25 + 40);
});

it('runs many small jobs as few parts', async () => {
  const isMissing = (position: number, generation: number) => position === 7 && generation < 1;
  const small = { maxLines: 1, jobsPerPart: 10, isMissing };
  const { result, batch, provider, histories } = await run(small);
  expect(result).toMatchObject({ status: 'completed', completed: LINES });
  expect(answersOf(batch)).toEqual(Array(LINES).fill(1));
  expect(provider.rows).toHaveLength(LINES + 1);
  expect(provider.watched.map(({ job }) => job.jobs?.length ?? 1)).toEqual([10, 10, 10, 1]);
  expect(histories[0]?.events?.length).toBeLessThan(4 * 25 + 40);
});

it.each([true, false])(
  'shows its providers in Temporal only if the namespace has the attribute: %s',
  async (showsProviders) => {
    const { histories } = await run({}, { showsProviders });
    const upserted = (histories[0]?.events ?? []).flatMap(
      ({ upsertWorkflowSearchAttributesEventAttributes: upsert }) =>
        Object.entries(upsert?.searchAttributes?.indexedFields ?? {}),
    );
    const shown = upserted.filter(([name]) => name === 'BatchProviders');
    const values = shown.map(([, { data }]) => JSON.parse(Buffer.from(data ?? []).toString()));
    expect(values).toEqual(showsProviders ? [['fake']] : []);
    expect(upserted.map(([name]) => name)).toContain('BatchModels');
  },
);

it('runs what is left in a second generation, and then at the gateway', async () => {
  const { result, batch, provider } = await run({
    fallback: true,
    isMissing: (position, generation) => position % 10 === 0 && (generation < 1 || position > 0),
  });
  expect(result).toMatchObject({ status: 'completed', completed: LINES });
  expect(provider.submitted.map(({ job }) => job.generation)).toEqual([0, 1]);
  // Chunks cover the range from the first line that is left, and skip what the journal answers.
  expect(batch.chunks.map(({ from, to }) => [from, to])).toEqual([[10, LINES]]);
});

it('ends what is left with an error if there is no gateway', async () => {
  const { result, batch, provider } = await run({ isMissing: (position) => position >= 25 });
  expect(result).toMatchObject({ status: 'completed' });
  expect(provider.settled).toEqual([{ from: 25, to: LINES }]);
  expect(answersOf(batch)).toEqual(Array(LINES).fill(1));
  expect(batch.chunks).toEqual([]);
});

it('counts no line twice in a generation that spans answered lines', async () => {
  const { result, provider } = await play('delegated-around-answers');
  expect(result).toMatchObject({ status: 'completed', completed: LINES });
  const collected = [...(provider?.collected ?? [])].sort(
    ({ job: a }, { job: b }) => a.generation - b.generation || a.from - b.from,
  );
  expect(collected.map(({ job: { from, to }, taken }) => [from, to, taken])).toEqual([
    [0, 10, undefined],
    [10, 20, undefined],
    [20, 30, undefined],
    [
      5,
      30,
      [
        { from: 5, to: 10 },
        { from: 28, to: 30 },
      ],
    ],
  ]);
});

it('runs each job once if staging cuts several parts at the same time', async () => {
  const { result, provider, batch } = await play('delegated-and-cut');
  expect(result).toMatchObject({ status: 'completed', completed: 60 });
  expect(answersOf(batch)).toEqual(Array(60).fill(1));
  expect(provider?.rows).toHaveLength(6);
  expect(provider?.submits).toBe(6);
  expect(provider?.collected).toHaveLength(6);
});

it('begins a job for what staging has cut off, beside the first one', async () => {
  const { result, provider } = await run({
    stagedTo: ({ job }) => Math.min(job.to, job.from + 12),
  });
  expect(result).toMatchObject({ status: 'completed', completed: LINES });
  expect(provider.rows.map(({ from, to, generation }) => [from, to, generation])).toEqual([
    [0, 12, 0],
    [12, 24, 0],
    [24, LINES, 0],
  ]);
  // The jobs beside the rest are not run a second time.
  expect(provider.submits).toBe(3);
});

it('runs beside a model with a gateway, which it does not hold up', async () => {
  const order: string[] = [];
  const provider = new FakeDelegation({
    looks: 3,
    onWatch: async () => {
      await until(() => order.includes('chunk'), 20_000, 'a chunk of the other model');
    },
  });
  const { result, batch } = await run(
    {},
    {
      models: [
        { model: 'far', entries: 10 },
        { model: 'near', entries: 10 },
      ],
      delegated: { far: provider },
      onChunk: async () => void order.push('chunk'),
    },
  );
  expect(result).toMatchObject({ status: 'completed', completed: 20 });
  expect(batch.chunks.map(({ model }) => model)).toEqual(['near']);
});

describe('a stop', () => {
  it('cancels jobs at the provider, and delivers what they have', async () => {
    const { result, batch, provider } = await run(
      { looks: 1_000, maxLines: 15, isMissing: (position) => position % 2 === 0 },
      {},
      ({ provider: far }) =>
        async (handle) => {
          await until(() => far.watched.length > 4, 20_000, 'jobs that are watched');
          await handle.signal('cancelBatch');
        },
    );
    expect(result).toMatchObject({ status: 'cancelled', completed: LINES / 2 });
    expect(provider.watched.filter(({ stopping }) => stopping)).toHaveLength(2);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
    expect(provider.settled).toEqual([]);
  });

  it('waits for a create on its way, and collects its job', async () => {
    let isSending = false;
    const { result, provider } = await run(
      {
        onSubmit: async () => {
          isSending = true;
          await untilCancelled();
        },
      },
      {},
      () => async (handle) => {
        await until(() => isSending, 20_000, 'a create on its way');
        await handle.signal('cancelBatch');
      },
    );
    expect(result).toMatchObject({ status: 'cancelled', completed: LINES });
    expect(provider.rows.map(({ step }) => step)).toEqual(['collected']);
  });
});

it('goes on in a new run, with the jobs that the rows name', async () => {
  const { result, histories, provider } = await play('delegated-continued');
  expect(histories.length).toBeGreaterThan(1);
  expect(result).toMatchObject({ status: 'completed', completed: 930 });
  expect(provider?.submitted).toHaveLength(1);
}, 60_000);
