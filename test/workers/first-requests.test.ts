import { NightshiftError } from '../../core/errors';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { createFirstRequests } from '../../workers/first-requests';
import { movedSeries } from '../support/metric-values';
import { until } from '../support/until';

/** A database that answers with these ages, or fails with these errors. */
function open(...answers: readonly (number | null | Error)[]) {
  const registry = createMetricsRegistry('worker');
  registry.clear();
  const noted: { batchId: string; agoMs: number }[] = [];
  const left = [...answers];
  const onRequest = createFirstRequests({
    metrics: createWorkerMetrics(registry),
    batches: {
      noteFirstRequest: async (batchId, agoMs) => {
        noted.push({ batchId, agoMs });
        const answer = left.shift();
        if (answer instanceof Error) throw answer;
        return answer ?? null;
      },
    },
    retryMs: 5,
  });
  const observed = () => movedSeries(registry, 'batch_first_request_seconds_sum');
  return { onRequest, noted, observed, isAsked: () => left.length === 0 };
}

it('notes the first request of each batch, and no other', async () => {
  const { onRequest, noted, observed } = open(7, null);
  for (const batch of ['a', 'a', 'b', 'a', 'b']) onRequest(batch);
  expect(noted.map(({ batchId }) => batchId)).toEqual(['a', 'b']);
  await until(async () => Object.keys(await observed()).length > 0, 5_000, 'an observation');
  expect(await observed()).toEqual({ batch_first_request_seconds_sum: 7 });
});

it('tries again while PostgreSQL does not answer, with the time of the request', async () => {
  const { onRequest, noted, isAsked } = open(new NightshiftError('postgres_unavailable', 'x'), 7);
  onRequest('a');
  await until(isAsked, 5_000, 'the second try');
  expect(noted[1]?.agoMs).toBeGreaterThanOrEqual(4);
});
