import { TEMPORAL_START_MS } from '../support/temporal';
import { FakeBatch } from './fake-batch';
import { activitiesIn, type ScenarioPlayer, startScenarioPlayer } from './play-scenario';
import { SCENARIOS, type Scenario } from './scenarios';

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

async function play(scenario: Scenario | undefined) {
  if (scenario === undefined) throw new Error('there is no such scenario');
  const played = await player.play(scenario);
  return { ...played, batch: scenario.batch, activities: activitiesIn(played.histories) };
}

describe('the last chunk', () => {
  it.concurrent('of all models may end the batch, and nothing else is done then', async () => {
    const { batch, result, activities } = await play(SCENARIOS['ended-by-its-last-chunk']?.());
    expect(result).toMatchObject({ status: 'completed', total: 45, outputFileId: 'file-o' });
    expect(activities).toEqual(['ingest', 'executeChunk', 'executeChunk']);
    expect(batch.chunks.map(({ model, isLast }) => [model, isLast]).sort()).toEqual([
      ['alpha', undefined],
      ['beta', true],
    ]);
    expect(batch.transitions).toEqual(['validating', 'in_progress', 'finalizing', 'completed']);
  });

  it.concurrent('ends a batch that is cancelled too late', async () => {
    const name = 'ended-by-its-last-chunk-and-cancelled';
    const { batch, result, activities } = await play(SCENARIOS[name]?.());
    expect(result).toMatchObject({ status: 'completed', total: 5 });
    expect(activities).toEqual(['ingest', 'executeChunk']);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: null }]);
  });

  it.concurrent('leaves the end to the workflow if it says nothing of one', async () => {
    const { batch, result, activities } = await play(SCENARIOS['announced']?.());
    expect(result).toMatchObject({ status: 'completed' });
    expect(batch.chunks.map(({ isLast }) => isLast)).toEqual([true]);
    expect(activities).toEqual(['ingest', 'executeChunk', 'finalize']);
  });

  it.concurrent.each([
    ['of a long batch', { models: [{ model: 'alpha', entries: 250_001 }], announces: 'always' }],
    ['of a batch whose row may lack its phase', { announces: 'late' }],
    ['beside a model without a route', { undecided: ['beta'], announces: 'always' }],
  ] as const)('%s may not end it', async (_, options) => {
    const models = [
      { model: 'alpha', entries: 5 },
      { model: 'beta', entries: 5 },
    ];
    const { batch, result } = await play({ batch: new FakeBatch({ models, ...options }) });
    expect(result).toMatchObject({ status: 'completed' });
    expect(batch.chunks.filter(({ isLast }) => isLast === true)).toEqual([]);
    expect(batch.finalized).toHaveLength(1);
  });
});
