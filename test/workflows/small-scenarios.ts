import { Context } from '@temporalio/activity';
import type { SmallBatchResult } from '../../activities/contract';
import { CANCEL_SIGNAL } from '../../workflows/contract';
import { until } from '../support/until';
import { crash, FakeBatch, type FakeBatchOptions, untilCancelled } from './fake-batch';
import type { Scenario } from './scenarios';

/** Courses of batches that one activity may do at once. */
export const SMALL_SCENARIOS: Readonly<Record<string, () => Scenario>> = {
  small: () => ({ batch: smallBatch((_, batch) => batch.endOfSmall()) }),
  'small-and-refused': () => ({
    batch: smallBatch((_, batch) => batch.endOfSmall(), { invalid: true }),
  }),
  // The end was not written, although the file was refused.
  'small-and-refused-in-steps': () => ({
    batch: smallBatch(() => Promise.resolve({}), { invalid: true }),
  }),
  'small-and-partly-answered': () => ({
    batch: smallBatch((_, batch) => Promise.resolve(batch.chunkOfSmall(2, 'box'))),
  }),
  'small-and-answered-but-not-ended': () => ({
    batch: smallBatch((_, batch) => Promise.resolve(batch.chunkOfSmall(5, 'done'))),
  }),
  'small-and-its-worker-dies': () => ({ batch: smallBatch(() => Promise.reject(crash())) }),
  'small-and-slow': () => ({
    batch: smallBatch(async (_, batch) => {
      const context = Context.current();
      const heart = setInterval(() => context.heartbeat(), 100);
      await context.sleep(SLOW_MS).finally(() => clearInterval(heart));
      return batch.endOfSmall();
    }),
  }),
  'small-and-cancelled': () => cancelledSmall((batch) => batch.chunkOfSmall(2, 'stopped')),
  'small-and-lost-at-a-stop': () =>
    cancelledSmall(() => {
      throw crash();
    }),
  'small-until-the-deadline': () => ({
    batch: smallBatch(
      async (_, batch) => {
        await untilCancelled();
        return batch.chunkOfSmall(2, 'stopped');
      },
      { expiresInMs: 3_000 },
    ),
  }),
};

/** Longer than it takes until the phase of a small batch is shown. */
const SLOW_MS = 11_000;

function smallBatch(
  small: NonNullable<FakeBatchOptions['small']>,
  options: FakeBatchOptions = {},
): FakeBatch {
  return new FakeBatch({ models: [{ model: 'alpha', entries: 5 }], small, ...options });
}

function cancelledSmall(end: (batch: FakeBatch) => Partial<SmallBatchResult>): Scenario {
  const batch: FakeBatch = smallBatch(async () => {
    await untilCancelled();
    return end(batch);
  });
  return {
    batch,
    drive: async (handle) => {
      await until(() => batch.smallRuns.length > 0, 20_000, 'the activity');
      await handle.signal(CANCEL_SIGNAL);
    },
  };
}
