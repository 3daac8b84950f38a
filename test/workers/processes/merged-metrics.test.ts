import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { metricValues } from '../../support/metric-values';
import { mergeMetrics } from '../../../workers/processes/merged-metrics';

/** The page of a process whose series have `n` as their value. */
async function page(n: number): Promise<string> {
  const registry = new Registry();
  registry.setDefaultLabels({ process: 'worker' });
  const registers = [registry];
  const labelNames = ['model'];
  const requests = new Counter({ name: 'requests_total', help: 'h', labelNames, registers });
  requests.inc({ model: `a b="c" ${n}` }, n);
  requests.inc({ model: 'both' }, n);
  const seconds = { name: 'took_seconds', help: 'h', buckets: [1, 10], registers };
  new Histogram(seconds).observe(n);
  const gauge = (name: string) => new Gauge({ name, help: 'h', registers }).set(n);
  ['in_flight', 'dependency_up', 'processor_max_inflight_concurrency'].forEach(gauge);
  gauge('nodejs_eventloop_lag_p99_seconds');
  return registry.metrics();
}

it('adds series of several processes up, and keeps the one that matters of states', async () => {
  const text = mergeMetrics([await page(2), await page(5)]);
  expect(metricValues(text)).toEqual({
    'requests_total{model="a b=\\"c\\" 2"}': 2,
    'requests_total{model="a b=\\"c\\" 5"}': 5,
    'requests_total{model="both"}': 7,
    'took_seconds_bucket{le="1"}': 0,
    'took_seconds_bucket{le="10"}': 2,
    'took_seconds_bucket{le="+Inf"}': 2,
    took_seconds_sum: 7,
    took_seconds_count: 2,
    in_flight: 7,
    dependency_up: 2,
    processor_max_inflight_concurrency: 5,
    nodejs_eventloop_lag_p99_seconds: 5,
  });
});

it('names and types each family once, and keeps its series together', async () => {
  const lines = mergeMetrics([await page(1), await page(2)]).split('\n');
  const types = lines.filter((line) => line.startsWith('# TYPE'));
  expect(new Set(types).size).toBe(types.length);
  const families = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const names = families.map((line) => line.replace(/(_bucket|_sum|_count)?\{.*/, ''));
  expect(names.filter((name, at) => name !== names[at - 1])).toEqual([...new Set(names)]);
});

it('passes on what a process cannot give a number', () => {
  expect(mergeMetrics(['# TYPE x gauge\nx NaN\n', ''])).toContain('x NaN');
});
