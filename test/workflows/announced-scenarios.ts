import { CANCEL_SIGNAL } from '../../workflows/contract';
import { until } from '../support/until';
import { FakeBatch, type FakeBatchOptions, untilCancelled } from './fake-batch';
import type { Scenario } from './scenarios';

const HOLE = { safe: 'alpha', from: 0, to: 3 };

/** Courses of batches whose ingestion and finalization write their phases into the row. */
export const ANNOUNCED_SCENARIOS: Readonly<Record<string, () => Scenario>> = {
  announced: () => ({ batch: announcing() }),
  // PostgreSQL did not answer in time.
  'announced-late': () => ({ batch: announcing({ announces: 'late' }) }),
  'announced-and-reopened': () => ({
    batch: announcing({
      onFinalize: ({ finalized }) =>
        finalized.length === 1 ? { kind: 'holes', holes: [HOLE] } : null,
    }),
  }),
  // The row said so when ingestion wrote its phase, and the signal never came.
  'announced-and-cancelled-in-the-row': () => ({
    batch: announcing({
      onIngest: (batch) => {
        batch.claim('cancelled');
        return Promise.resolve();
      },
    }),
  }),
  'announced-and-cancelled': () => {
    const batch = announcing({ onChunk: untilCancelled });
    return {
      batch,
      drive: async (handle) => {
        await until(() => batch.chunks.length > 0, 20_000, 'a first chunk');
        await handle.signal(CANCEL_SIGNAL);
      },
    };
  },
};

function announcing(options: FakeBatchOptions = {}): FakeBatch {
  return new FakeBatch({
    models: [{ model: 'alpha', entries: 5 }],
    announces: 'always',
    ...options,
  });
}
