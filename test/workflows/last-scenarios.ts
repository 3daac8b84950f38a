import { CANCEL_SIGNAL } from '../../workflows/contract';
import { until } from '../support/until';
import { FakeBatch, untilCancelled } from './fake-batch';
import type { Scenario } from './scenarios';

/** Courses of batches whose last chunk ends them. */
export const LAST_SCENARIOS: Readonly<Record<string, () => Scenario>> = {
  'ended-by-its-last-chunk': () => ({
    batch: new FakeBatch({
      models: [
        { model: 'alpha', entries: 40 },
        { model: 'beta', entries: 5 },
      ],
      announces: 'always',
      onChunk: async ({ isLast }, batch) => {
        if (isLast !== true) return;
        await until(() => batch.answered.size === 40, 20_000, 'the answers of the other model');
        return { ended: await batch.endOfLastChunk() };
      },
    }),
  }),
  // Its end is in the row before the chunk hears of the cancel.
  'ended-by-its-last-chunk-and-cancelled': () => {
    const batch = new FakeBatch({
      models: [{ model: 'alpha', entries: 5 }],
      announces: 'always',
      onChunk: async ({ to }, self) => {
        const ended = await self.endOfLastChunk();
        await untilCancelled();
        return { next: to, left: 'done', ended };
      },
    });
    return {
      batch,
      drive: async (handle) => {
        await until(() => batch.finalized.length > 0, 20_000, 'the end of the batch');
        await handle.signal(CANCEL_SIGNAL);
      },
    };
  },
};
