import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import { packageRoot } from '../../platform/package-root';
import { createRequestObserver } from '../../workers/request-observer';

import { movedSeries } from '../support/metric-values';

const USAGE = {
  inputTokens: 3,
  cachedTokens: 0,
  outputTokens: 5,
  reasoningTokens: 0,
  totalTokens: 8,
};
const IDLE_MS = 1_000;

function open(maxLabelValues?: number, models: string[] = []) {
  const registry = createMetricsRegistry('worker');
  registry.clear();
  const clock = { nowMs: 0 };
  const nowMs = () => clock.nowMs;
  const limits = maxLabelValues === undefined ? {} : { maxLabelValues };
  const metrics = createWorkerMetrics(registry, { ...limits, models, idleMs: IDLE_MS, nowMs });
  const observer = createRequestObserver({
    ...{ metrics, onRequest: () => undefined, givenBack: () => undefined },
  });
  const send = (model: string): void => {
    observer.requestStarted(model, 'b');
    observer.requestRetried(model, 'timeout');
    observer.requestEnded(model, 5);
    observer.requestQueued(model, 5);
    observer.requestDropped(model, 'evicted');
    observer.requestSettled(model, false);
    observer.tokens(model, USAGE);
  };
  /** Values of `name` by model. */
  const values = async (name: string): Promise<Record<string, number>> => {
    const found: Record<string, number> = {};
    const text = await registry.metrics();
    for (const [, model = '', value] of text.matchAll(
      new RegExp(`^${name}\\{model="([^"]*)".*\\} (\\S+)$`, 'gm'),
    ))
      found[model] = Number(value);
    return found;
  };
  const series = async (): Promise<number> =>
    (await registry.metrics()).split('\n').filter((line) => line.includes('model="')).length;
  return { observer, send, clock, values, series };
}

it('limits a thousand invented models to the series of two hundred, and loses no count', async () => {
  const { send, series, values } = open();
  send('m0');
  const ofOne = await series();
  for (let i = 0; i < 1_000; i++) send(`m${i}`);
  expect(await series()).toBe(201 * ofOne);
  const errors = await values('request_errors_by_model_total');
  expect([errors['m0'], errors['m199'], errors['m200'], errors['other']]).toEqual([
    2,
    1,
    undefined,
    800,
  ]);
  expect((await values('batch_request_prompt_tokens_total'))['other']).toBe(2_400);
});

it('removes the series of an idle model, which makes room for others', async () => {
  const { send, series, values, clock, observer } = open(2);
  send('a');
  observer.requestStarted('b', 'batch');
  send('c');
  clock.nowMs = IDLE_MS;
  expect(Object.keys(await values('model_inflight_requests')).sort()).toEqual(['b', 'other']);
  send('c');
  expect(await values('model_request_retries_total')).toEqual({ b: 0, c: 1, other: 1 });
  expect(await values('model_requests_dropped_total')).toEqual({ c: 1, other: 1 });
  observer.requestEnded('b', 5);
  clock.nowMs = 3 * IDLE_MS;
  await series();
  expect(await values('model_inflight_requests')).toEqual({ other: 0 });
  send('a');
  expect((await values('request_errors_by_model_total'))['a']).toBe(1);
});

it('always gives configured models series of their own', async () => {
  const { send, values } = open(1, ['named']);
  for (const model of ['x', 'y', 'named']) send(model);
  expect(Object.keys(await values('request_errors_by_model_total')).sort()).toEqual([
    'named',
    'other',
    'x',
  ]);
});

it('counts requests in flight correctly while models come, go and share a label', async () => {
  const model = fc.constantFrom('a', 'b', 'c', 'd', 'other');
  const step = fc.record({ model, waitMs: fc.constantFrom(0, IDLE_MS), end: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { observer, values, clock } = open(2);
      const inFlight: string[] = [];
      for (const { model: next, waitMs, end } of steps) {
        clock.nowMs += waitMs;
        if (end && inFlight.length > 0) observer.requestEnded(inFlight.shift() ?? '', 1);
        else {
          inFlight.push(next);
          observer.requestStarted(next, 'batch');
        }
        const shown = await values('model_inflight_requests');
        const sum = Object.values(shown).reduce((a, b) => a + b, 0);
        expect(sum).toBe(inFlight.length);
        expect(Math.min(0, ...Object.values(shown))).toBe(0);
        expect(Object.keys(shown).filter((label) => label !== 'other').length).toBeLessThan(3);
      }
      while (inFlight.length > 0) observer.requestEnded(inFlight.pop() ?? '', 1);
      expect(Object.values(await values('model_inflight_requests')).every((n) => n === 0)).toBe(
        true,
      );
    }),
    { numRuns: 60, seed: 3 },
  );
});

it.each([...Object.values(EXIT_REASON), 'error' as const])(
  'names the exit %s of a chunk as the page does, and gives its batch back if it is a drain',
  async (exit) => {
    const registry = createMetricsRegistry('worker');
    registry.clear();
    const given: string[] = [];
    const observer = createRequestObserver({
      ...{ metrics: createWorkerMetrics(registry), onRequest: () => undefined },
      givenBack: (batchId) => void given.push(batchId),
    });
    observer.chunkEnded({ batchId: 'b', exit, tookMs: 1_500 });
    const moved = Object.entries(await movedSeries(registry, 'chunk_duration_seconds_sum'));
    const [, label = ''] = /exit="(\w+)"/.exec(moved[0]?.[0] ?? '') ?? [];
    expect(moved).toEqual([[`chunk_duration_seconds_sum{exit="${label}"}`, 1.5]]);
    const page = readFileSync(join(packageRoot(), 'docs', 'metrics.md'), 'utf8');
    expect(/^`exit` is [^]*?\.$/m.exec(page)?.[0]).toContain(`\`${label}\``);
    expect(given).toEqual(exit === 'drain' ? ['b'] : []);
  },
);
