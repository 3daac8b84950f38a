import { TEMPORAL_START_MS } from '../support/temporal';
import type { FakeBatch } from './fake-batch';
import { type PlayedScenario, type ScenarioPlayer, startScenarioPlayer } from './play-scenario';
import { SCENARIOS } from './scenarios';

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

async function run(name: string): Promise<PlayedScenario & { batch: FakeBatch; local: number }> {
  const scenario = SCENARIOS[name]?.();
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const played = await player.play(scenario);
  const events = played.histories.flatMap((history) => history.events ?? []);
  const names = events.map((event) => event.markerRecordedEventAttributes?.markerName);
  const local = names.filter((marker) => marker === 'core_local_activity').length;
  return { ...played, batch: scenario.batch, local };
}

const IN_ORDER = ['validating', 'in_progress', 'finalizing', 'completed'];

describe('phases that ingestion and finalization write', () => {
  it.concurrent('are in the row, and cost the workflow no step', async () => {
    const { batch, result, local } = await run('announced');
    expect(result).toMatchObject({ status: 'completed', total: 5, completed: 5 });
    expect(batch.transitions).toEqual(IN_ORDER);
    // Only the one that opens the batch.
    expect(local).toBe(1);
  });

  it.concurrent('are written by the workflow if ingestion could not in time', async () => {
    const { batch, local } = await run('announced-late');
    expect(batch.transitions).toEqual(IN_ORDER);
    expect(local).toBe(2);
  });

  it.concurrent('allow a batch to go back to execution', async () => {
    const { batch, result } = await run('announced-and-reopened');
    expect(result).toMatchObject({ status: 'completed' });
    expect(batch.finalized).toHaveLength(2);
    expect(batch.chunks.map(({ from, to }) => [from, to])).toEqual([
      [0, 5],
      [0, 3],
    ]);
  });

  it.concurrent('carry a stop that is in the row: nothing is sent', async () => {
    const { batch, result } = await run('announced-and-cancelled-in-the-row');
    expect(result).toMatchObject({ status: 'cancelled' });
    expect(batch.chunks).toEqual([]);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
  });

  it.concurrent('do not hide a cancel', async () => {
    const { batch, result } = await run('announced-and-cancelled');
    expect(result).toMatchObject({ status: 'cancelled' });
    expect(batch.transitions).toEqual(['validating', 'in_progress', 'cancelling', 'cancelled']);
  });
});
