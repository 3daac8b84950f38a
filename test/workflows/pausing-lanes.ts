import { until } from '../support/until';
import { detailsOf } from './details-of';
import { FakeBatch } from './fake-batch';
import type { Scenario } from './scenarios';

const ENTRIES = 900;
const ANSWERED_CHUNKS = 4;

/**
 * Lanes get no permit once four chunks were answered, and pause until the window ends. Their chunks return when the
 * workflow knows of the four, because an answer that comes back later wakes lanes that pause.
 */
export function expiredWhilePausing(): Scenario {
  let areAnswersKnown = false;
  const batch = new FakeBatch({
    expiresInMs: 4_000,
    models: [{ model: 'alpha', entries: ENTRIES }],
    settings: { lanesPerModel: 8 },
    ratePerSec: 5,
    onChunk: async (input, { chunks }) => {
      const count = chunks.length;
      if (count <= ANSWERED_CHUNKS) return { worker: `w${count}` };
      await until(() => areAnswersKnown, 20_000, 'the answers');
      return { next: input.from, left: 'no_permit' };
    },
  });
  return {
    batch,
    drive: async (handle) => {
      await until(
        async () => {
          const first = batch.chunks.slice(0, ANSWERED_CHUNKS);
          const answered = first.reduce((sum, { from, to }) => sum + to - from, 0);
          const isKnown = (await detailsOf(handle)).includes(`| ${ENTRIES} | ${answered} |`);
          return first.length === ANSWERED_CHUNKS && isKnown;
        },
        20_000,
        'the four answered chunks',
      );
      areAnswersKnown = true;
    },
  };
}
