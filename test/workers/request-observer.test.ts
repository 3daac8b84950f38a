import fc from 'fast-check';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { createRequestObserver } from '../../workers/request-observer';

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
  expect(await values('model_request_retries_total')).toEqual({ c: 1, other: 1 });
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
