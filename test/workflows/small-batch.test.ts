import { TEMPORAL_START_MS } from '../support/temporal';
import type { FakeBatch } from './fake-batch';
import {
  activitiesIn,
  type PlayedScenario,
  type ScenarioPlayer,
  startScenarioPlayer,
} from './play-scenario';
import { SCENARIOS } from './scenarios';

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

interface Played extends PlayedScenario {
  readonly batch: FakeBatch;
  /** Types of the activities of the history, in order. */
  readonly activities: readonly (string | null | undefined)[];
  /** Values that the history gives the search attribute of the phase. */
  readonly phases: readonly string[];
}

async function run(name: string): Promise<Played> {
  const scenario = SCENARIOS[name]?.();
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const played = await player.play(scenario);
  const events = played.histories.flatMap((history) => history.events ?? []);
  const upserts = events.flatMap(
    (event) => event.upsertWorkflowSearchAttributesEventAttributes ?? [],
  );
  const values = upserts.flatMap(
    (one) => one.searchAttributes?.indexedFields?.['BatchPhase'] ?? [],
  );
  return {
    ...played,
    batch: scenario.batch,
    activities: activitiesIn(played.histories),
    phases: values.map(({ data }) => JSON.parse(Buffer.from(data ?? []).toString()) as string),
  };
}

const IN_STEPS = ['runSmallBatch', 'ingest', 'executeChunk', 'finalize'];

describe('a small batch', () => {
  it.concurrent('is one activity, whose end is that of the workflow', async () => {
    const { batch, result, activities, phases, histories } = await run('small');
    expect(result).toMatchObject({ status: 'completed', total: 5, completed: 5 });
    expect(activities).toEqual(['runSmallBatch']);
    expect(phases).toEqual(['completed']);
    expect(batch.chunks).toEqual([]);
    expect(histories[0]?.events?.length).toBeLessThanOrEqual(16);
  });

  it.concurrent('whose file is refused fails within the activity', async () => {
    const { error, activities } = await run('small-and-refused');
    expect(error).toMatchObject({ cause: { type: 'BatchFailed' } });
    expect(activities).toEqual(['runSmallBatch']);
  });

  it.concurrent('whose refusal was not written ends with the next step', async () => {
    const { error, activities, batch } = await run('small-and-refused-in-steps');
    expect(error).toMatchObject({ cause: { type: 'BatchFailed' } });
    expect(activities).toEqual(['runSmallBatch', 'finalize']);
    expect(batch.finalized).toEqual([{ nonce: null, cause: null }]);
  });

  it.concurrent('that is partly answered goes on with the rest', async () => {
    const { result, activities, batch } = await run('small-and-partly-answered');
    expect(result).toMatchObject({ status: 'completed', completed: 5 });
    expect(activities).toEqual(['runSmallBatch', 'executeChunk', 'finalize']);
    expect(batch.chunks).toMatchObject([{ from: 2, to: 5, planNonce: 'n0' }]);
    expect(new Set(batch.answered.values())).toEqual(new Set([1]));
  });

  it.concurrent('that is answered and not ended sends nothing again', async () => {
    const { result, activities } = await run('small-and-answered-but-not-ended');
    expect(result).toMatchObject({ status: 'completed', completed: 5 });
    expect(activities).toEqual(['runSmallBatch', 'finalize']);
  });

  it.concurrent('whose worker dies goes on step by step', async () => {
    const { result, activities } = await run('small-and-its-worker-dies');
    expect(result).toMatchObject({ status: 'completed', completed: 5 });
    expect(activities).toEqual(IN_STEPS);
  });

  it.concurrent('shows its phase if it takes long', async () => {
    const { result, activities, phases } = await run('small-and-slow');
    expect(result).toMatchObject({ status: 'completed' });
    expect(activities).toEqual(['runSmallBatch']);
    expect(phases).toEqual(['in_progress', 'completed']);
  });

  it.concurrent('that is cancelled delivers what its activity has answered', async () => {
    const { result, activities, batch } = await run('small-and-cancelled');
    expect(result).toMatchObject({ status: 'cancelled', total: 5, completed: 2 });
    expect(activities).toEqual(['runSmallBatch', 'finalize']);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
  });

  it.concurrent('that is lost at a stop is planned, and its sender awaited', async () => {
    const { result, activities, batch } = await run('small-and-lost-at-a-stop');
    expect(result).toMatchObject({ status: 'cancelled' });
    expect(activities).toEqual(['runSmallBatch', 'ingest', 'awaitReleased', 'finalize']);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
  });

  it.concurrent('expires at its deadline', async () => {
    const { result, batch } = await run('small-until-the-deadline');
    expect(result).toMatchObject({ status: 'expired', completed: 2 });
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'expired' }]);
  });
});
