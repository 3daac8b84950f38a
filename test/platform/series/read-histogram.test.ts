import { Histogram, Registry } from 'prom-client';
import { Observations, readHistogram } from '../../../platform/series/read-histogram';

const SERIES = { name: 'seconds', help: 'Some time', labelNames: ['of'], buckets: [0.1, 1, 2.5] };
const VALUES = [0, 0.1, 0.100001, 0.7, 1, 2.5, 2.6, 1_000];

function openBoth() {
  const own = new Registry();
  const library = new Registry();
  for (const registry of [own, library]) registry.setDefaultLabels({ process: 'test' });
  const histogram = new Histogram({ ...SERIES, registers: [library] });
  const observed = new Map<string, Observations>();
  readHistogram([own], SERIES, () => [...observed].map(([of, all]) => [{ of }, all] as const));
  const observe = (of: string, value: number) => {
    const all = observed.get(of) ?? new Observations(SERIES.buckets);
    observed.set(of, all);
    all.observe(value);
    histogram.observe({ of }, value);
  };
  return { own, library, observe };
}

it('shows what was observed as the histogram of the library does', async () => {
  const { own, library, observe } = openBoth();
  for (const value of VALUES) observe('a', value);
  observe('b', 0.5);
  expect(await own.metrics()).toBe(await library.metrics());
  const values = async (registry: Registry) => {
    const found = await registry.getMetricsAsJSON();
    return found[0]?.values.map((line) => ({ ...line, exemplar: null }));
  };
  expect(await values(own)).toEqual(await values(library));
});

it('counts an observation in each bucket whose bound it does not exceed', async () => {
  const { own, observe } = openBoth();
  for (const value of VALUES) observe('a', value);
  const lines = (await own.metrics()).split('\n').filter((line) => line.includes('le='));
  expect(lines.map((line) => Number(line.split(' ').at(-1)))).toEqual([2, 5, 6, 8]);
});
