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

/** The heartbeat details that the second attempt of an ingestion gets from the first. */
async function detailsAfter(firstAttempt: (context: Context) => Promise<void>): Promise<unknown> {
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

// Counting deaths of workers and measuring the finalization window rely on both.
it('an attempt receives the last heartbeat of a failed one before it, even a throttled one', async () => {
  const details = await detailsAfter((context) => {
    context.heartbeat('reads');
    context.heartbeat('fails');
    return new Promise((_resolve, reject) => setImmediate(() => reject(new Error('away'))));
  });
  expect(details).toBe('fails');
});

it('an attempt receives the last heartbeat that reached the server before a worker died', async () => {
  const details = await detailsAfter(async (context) => {
    context.heartbeat('reads');
    await until(() => context.cancellationSignal.aborted, 20_000, 'the heartbeat timeout');
    throw new Error('too late to be heard');
  });
  expect(details).toBe('reads');
});
