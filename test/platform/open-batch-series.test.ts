import { Registry } from 'prom-client';
import { createOpenBatchSeries, type OpenSample } from '../../platform/series/open-batch-series';
import { metricValues } from '../support/metric-values';

const SAMPLE: OpenSample = {
  ...{ status: 'in_progress', batches: 3, overdue: 1, oldestSec: 60, openLines: 7 },
};

function open(source: () => Promise<readonly OpenSample[]>) {
  const registry = new Registry();
  let reads = 0;
  createOpenBatchSeries([registry], ['validating', 'in_progress']).observe(() => {
    reads++;
    return source();
  });
  const scrape = async () => metricValues(await registry.metrics());
  return { scrape, reads: () => reads };
}

afterEach(() => jest.restoreAllMocks());

it('show all statuses from one read, which serves the scrapes of ten seconds', async () => {
  let nowMs = 1_000;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const { scrape, reads } = open(() => Promise.resolve([SAMPLE]));
  const shown = {
    'batches_open{status="validating"}': 0,
    'batches_open{status="in_progress"}': 3,
    'batches_overdue{status="validating"}': 0,
    'batches_overdue{status="in_progress"}': 1,
    'batch_oldest_seconds{status="validating"}': 0,
    'batch_oldest_seconds{status="in_progress"}': 60,
    batch_waiting_lines: 7,
  };
  expect(await scrape()).toEqual(shown);
  nowMs += 9_999;
  expect(await scrape()).toEqual(shown);
  expect(reads()).toBe(1);
  nowMs += 1;
  await scrape();
  expect(reads()).toBe(2);
});

it('are absent while the database fails, and come back with the next scrape', async () => {
  const answers = [Promise.reject(new Error('away')), Promise.resolve([SAMPLE])];
  answers[0]?.catch(() => undefined);
  const { scrape } = open(() => answers.shift() ?? Promise.resolve([]));
  expect(await scrape()).toEqual({});
  expect(await scrape()).toMatchObject({ batch_waiting_lines: 7 });
});

it('are absent while the database hangs, which gets one statement', async () => {
  let answer: (samples: OpenSample[]) => void = () => undefined;
  const { scrape, reads } = open(() => new Promise((resolve) => (answer = resolve)));
  expect(await scrape()).toEqual({});
  expect(await scrape()).toEqual({});
  expect(reads()).toBe(1);
  answer([SAMPLE]);
  expect(await scrape()).toMatchObject({ 'batches_open{status="in_progress"}': 3 });
  expect(reads()).toBe(1);
}, 15_000);

it('are absent in a process that does not read them', async () => {
  const registry = new Registry();
  createOpenBatchSeries([registry], ['validating']);
  expect(metricValues(await registry.metrics())).toEqual({});
});
