import { Registry } from 'prom-client';
import { BAND } from '../../../core/dispatch/queue/band';
import { createFlowSeries, type FlowSeriesLimits } from '../../../platform/series/flow-series';
import { metricValues } from '../../support/metric-values';

function open(limits: FlowSeriesLimits) {
  const clock = { nowMs: 0 };
  const registry = new Registry();
  const { flow } = createFlowSeries([registry], { ...limits, nowMs: () => clock.nowMs });
  const series = async (name: string) => {
    const all = Object.entries(metricValues(await registry.metrics()));
    return Object.fromEntries(all.filter(([key]) => key.startsWith(`${name}{`)));
  };
  return { clock, flow, series };
}

const labelled = (name: string, model: string) =>
  `${name}{model="${model}",targetModel="${model}"}`;

it('counts models beyond the limit as one, except those that the settings name', async () => {
  const { flow, series } = open({ maxModels: 2, models: ['own'] });
  for (const model of ['a', 'b', 'c', 'd', 'own']) flow.enterModel(model).bypassed++;
  expect(await series('bypass_rate')).toEqual({
    [labelled('bypass_rate', 'a')]: 1,
    [labelled('bypass_rate', 'b')]: 1,
    [labelled('bypass_rate', 'other')]: 2,
    [labelled('bypass_rate', 'own')]: 1,
  });
});

it('keeps the meter of a request until its end, although its model could have its own by then', async () => {
  const { clock, flow, series } = open({ maxModels: 1, idleMs: 10 });
  flow.enterModel('a');
  flow.leaveModel('a');
  const shared = flow.enterModel('b');
  shared.inFlight++;
  clock.nowMs = 20;
  expect(await series('stock_level')).toEqual({ [labelled('stock_level', 'other')]: 1 });
  expect(flow.enterModel('b')).toBe(shared);
});

it('removes all series of a model without requests, but of none in flight', async () => {
  const { clock, flow, series } = open({ idleMs: 10 });
  for (const model of ['gone', 'busy']) {
    const meter = flow.enterModel(model);
    meter.refused.ErrTooManyFlows++;
    meter.queueTime.ofSuccesses.observe(1);
    meter.queueTime.ofOthers.observe(1);
  }
  flow.leaveModel('gone');
  clock.nowMs = 20;
  const names = [
    'queue_length',
    'requests_expired',
    'queue_push_errors',
    'queue_latency_seconds_count',
  ];
  for (const name of names) await series(name);
  for (const name of names) {
    const models = Object.keys(await series(name)).map((key) => key.match(/model="(\w+)"/)?.[1]);
    expect([...new Set(models)]).toEqual(['busy']);
  }
});

it('counts tenants beyond the limit as one, and forgets those without requests', async () => {
  const { clock, flow, series } = open({ maxTenants: 1, idleMs: 10 });
  flow.addTokens(BAND.standard, 'a', 1);
  flow.addTokens(BAND.sheddable, 'b', 2);
  flow.addTokens(BAND.sheddable, 'c', 3);
  const moved = async () =>
    Object.entries(await series('gateway_service_tokens_total')).filter(([, count]) => count > 0);
  expect(await moved()).toEqual([
    ['gateway_service_tokens_total{band="standard",tenant="a"}', 1],
    ['gateway_service_tokens_total{band="sheddable",tenant="other"}', 5],
  ]);
  clock.nowMs = 20;
  expect((await moved()).map(([key]) => key)).toEqual([
    'gateway_service_tokens_total{band="sheddable",tenant="other"}',
  ]);
});

it('shows every band from the start', async () => {
  const { series } = open({});
  expect(Object.keys(await series('gateway_preempted_total'))).toHaveLength(3);
  expect(await series('gateway_dropped_total')).toHaveProperty(
    ['gateway_dropped_total{band="critical",code="queue_ttl_expired"}'],
    0,
  );
  expect(await series('gateway_ttfb_seconds_count')).toHaveProperty(
    ['gateway_ttfb_seconds_count{band="standard"}'],
    0,
  );
});
