import type { OpenProvider } from '../../activities/delegate/deps';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import type { OpenJobs } from '../../storage/postgres/provider-jobs/open-jobs';
import { measureOpenJobs } from '../../workers/measure-open-jobs';
import { until } from '../support/until';

it('shows the open jobs of each provider of the worker, 0 without any, and survives a failed look', async () => {
  const registry = createMetricsRegistry('worker');
  const metrics = createWorkerMetrics(registry, { maxLabelValues: 10, idleMs: 1_000, models: [] });
  let found: OpenJobs[] = [{ account: 'a1', open: 3, tokens: 70, pollAgeSec: 12.5 }];
  let isAway = true;
  const warnings: unknown[] = [];
  const measured = measureOpenJobs({
    jobs: {
      openByAccount: async () => {
        if (isAway) throw new Error('away');
        return found;
      },
    },
    providers: ['p1', 'p2'].map((name, at) => ({ name, account: `a${at + 1}` }) as OpenProvider),
    metrics,
    logger: { warn: (log: unknown) => warnings.push(log) } as never,
    everyMs: 5,
  });
  const value = async (name: string, provider: string) => {
    const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
    return values.find(({ labels }) => labels['provider'] === provider)?.value;
  };
  const all = async (provider: string) => [
    await value('provider_jobs_open', provider),
    await value('provider_enqueued_tokens', provider),
    await value('provider_poll_age_seconds', provider),
  ];
  const shown = (provider: string, values: readonly number[]) =>
    until(async () => (await all(provider)).join() === values.join(), 5_000, values.join());
  await until(() => warnings.length > 0, 5_000, 'a warning');
  isAway = false;
  await shown('p1', [3, 70, 12.5]);
  expect(await all('p2')).toEqual([0, 0, 0]);
  found = [];
  await shown('p1', [0, 0, 0]);
  await measured.close();
});
