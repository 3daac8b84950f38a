import { Context } from '@temporalio/activity';
import { TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';
import { FakeBatch } from './fake-batch';
import { type ScenarioPlayer, startScenarioPlayer } from './play-scenario';

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

/** What the second attempt at an ingestion learns of the first. */
async function learned(firstAttempt: (context: Context) => Promise<void>): Promise<unknown> {
  let details: unknown;
  const batch = new FakeBatch({
    settings: { heartbeatTimeoutMs: 1_000 },
    onIngest: async () => {
      const context = Context.current();
      if (context.info.attempt === 1) await firstAttempt(context);
      details = context.info.heartbeatDetails;
    },
  });
  expect((await player.play({ batch })).result).toMatchObject({ status: 'completed' });
  return details;
}

// Counting the deaths of workers, and the time that finalization took, relies on both.
it('the next attempt learns what one that failed told last, held back or not', async () => {
  const details = await learned((context) => {
    context.heartbeat('reads');
    context.heartbeat('left');
    return new Promise((_resolve, reject) => setImmediate(() => reject(new Error('away'))));
  });
  expect(details).toBe('left');
});

it('the next attempt learns what one that died told last', async () => {
  const details = await learned(async (context) => {
    context.heartbeat('reads');
    await until(() => context.cancellationSignal.aborted, 20_000, 'the heartbeat timeout');
    throw new Error('too late to be heard');
  });
  expect(details).toBe('reads');
});
