import { Registry } from 'prom-client';
import { createLabelValues } from '../../platform/label-values';
import { createLimitGauges, type ModelLimitSample } from '../../platform/limit-gauges';

async function seriesOf(samples: () => readonly ModelLimitSample[]) {
  const registry = new Registry();
  const onGone = () => undefined;
  const labels = createLabelValues({ max: 200, idleMs: 1, nowMs: () => 0, onGone });
  for (const { model } of samples()) labels.of(model);
  createLimitGauges([registry], labels).observe(samples);
  return async () => {
    const text = await registry.metrics();
    return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
}

describe('the gauges of learned limits', () => {
  it('show the current values and disappear with their model', async () => {
    let samples: ModelLimitSample[] = [
      { model: 'a', limit: 5, pausedMs: 0 },
      { model: 'b', limit: 1, pausedMs: 20 },
    ];
    const series = await seriesOf(() => samples);
    expect(await series()).toEqual([
      'model_concurrency_limit{model="a"} 5',
      'model_concurrency_limit{model="b"} 1',
      'model_paused{model="a"} 0',
      'model_paused{model="b"} 1',
    ]);
    samples = samples.slice(0, 1);
    expect(await series()).toHaveLength(2);
  });

  it('have at most 201 series each, the last one with the worst value of the rest', async () => {
    const samples = Array.from({ length: 500 }, (_, i) => ({
      ...{ model: `m${i}`, limit: 500 - i, pausedMs: i === 300 ? 1 : 0 },
    }));
    const series = await (await seriesOf(() => samples))();
    expect(series).toHaveLength(402);
    expect(series).toContain('model_concurrency_limit{model="other"} 1');
    expect(series).toContain('model_paused{model="other"} 1');
  });
});
