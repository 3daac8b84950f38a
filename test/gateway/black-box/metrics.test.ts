import { until } from '../../support/until';
import {
  answerOf,
  closeOutside,
  ONE_AT_A_TIME,
  Outside,
  poolOf,
  refusal,
  ScriptedBackend,
} from './outside';

let gateway: Outside;
let backend: ScriptedBackend;
let away: ScriptedBackend;

beforeAll(async () => {
  backend = await ScriptedBackend.start();
  away = await ScriptedBackend.start();
  const queue = { total_capacity: 3, flow_capacity: 2, queue_ttl: '20s' };
  gateway = await Outside.start({
    gateway: {
      pools: {
        ...poolOf('m', [backend], { ...ONE_AT_A_TIME, fair_request_queue: queue }),
        ...poolOf('ttl', [away], { ...ONE_AT_A_TIME, fair_request_queue: { queue_ttl: '200ms' } }),
      },
    },
  });
}, 60_000);
afterAll(closeOutside);

const BATCH = { 'x-gateway-inference-objective': 'batch' };
const labels = (model: string, more = '') => `{model="${model}",targetModel="${model}"${more}}`;

const CANCELLED = `requests_cancelled${labels('m')}`;
const pushError = (type: string) => `queue_push_errors${labels('m', `,error_type="${type}"`)}`;
const latency = (success: boolean) =>
  `queue_latency_seconds_count${labels('m', `,success="${success}"`)}`;
/** What the first test leaves. */
const AFTERWARDS = {
  [`queue_length${labels('m')}`]: 0,
  [`stock_level${labels('m')}`]: 0,
  [`bypass_rate${labels('m')}`]: 1,
  [`requests_expired${labels('m')}`]: 0,
  [CANCELLED]: 1,
  [pushError('ErrInsufficientFlowCapacity')]: 1,
  [pushError('ErrTooManyFlows')]: 0,
  'active_flows{pool="m"}': 0,
  'gateway_saturation{pool="m"}': 0,
  'gateway_queued_cost{pool="m"}': 0,
  'gateway_queued_bytes{pool="m"}': 0,
  'popper_dequeue_successes{pool="m"}': 2,
  'gateway_preempted_total{band="sheddable"}': 1,
  'gateway_dispatched_total{band="standard",by="bypass"}': 1,
  'gateway_dispatched_total{band="standard",by="queue"}': 1,
  'gateway_dispatched_total{band="critical",by="queue"}': 1,
  'gateway_dropped_total{band="standard",code="insufficient_flow_capacity"}': 1,
  'gateway_dropped_total{band="sheddable",code="evicted"}': 1,
  'gateway_dropped_total{band="standard",code="client_closed"}': 1,
  // Answers of 1 and 1, and of 5 and 7 tokens: input + 2 × output.
  'gateway_service_tokens_total{band="critical",tenant="default"}': 3,
  'gateway_service_tokens_total{band="standard",tenant="default"}': 3 + 5 + 2 * 7,
  [latency(true)]: 3,
  [latency(false)]: 3,
  gateway_receiving_bytes: 0,
};

/** The values of these series; 0 for those that are not there. */
async function valuesOf(...names: string[]): Promise<Record<string, number>> {
  const all = await gateway.metrics();
  return Object.fromEntries(names.map((name) => [name, all[name] ?? 0]));
}

it('have exact values for requests that bypass, wait, are refused, evicted, cancelled and served', async () => {
  gateway.ask('m', 'first');
  await backend.holds(1);
  const [batch, user, leaves] = await gateway.queue('m', [
    () => gateway.ask('m', 'batch', BATCH),
    () => gateway.ask('m', 'user'),
    () => gateway.ask('m', 'leaves'),
  ]);
  expect((await refusal(gateway.ask('m', 'refused')))['code']).toBe('insufficient_flow_capacity');
  expect(
    await valuesOf(
      ...[`queue_length${labels('m')}`, `stock_level${labels('m')}`, `bypass_rate${labels('m')}`],
      ...[
        'upper_bound{pool="m"}',
        'lower_bound{pool="m"}',
        'watermark{pool="m"}',
        'active_flows{pool="m"}',
      ],
      ...['gateway_saturation{pool="m"}', 'popper_dequeue_successes{pool="m"}'],
      ...[
        'gateway_queued_requests{pool="m",band="standard"}',
        'gateway_queued_requests{pool="m",band="sheddable"}',
      ],
    ),
  ).toEqual({
    [`queue_length${labels('m')}`]: 3,
    [`stock_level${labels('m')}`]: 1,
    [`bypass_rate${labels('m')}`]: 1,
    'upper_bound{pool="m"}': 1,
    'lower_bound{pool="m"}': 1,
    'watermark{pool="m"}': 1,
    'active_flows{pool="m"}': 2,
    'gateway_saturation{pool="m"}': 1,
    'popper_dequeue_successes{pool="m"}': 0,
    'gateway_queued_requests{pool="m",band="standard"}': 2,
    'gateway_queued_requests{pool="m",band="sheddable"}': 1,
  });

  const critical = gateway.ask('m', 'critical', { 'x-gateway-inference-objective': 'realtime' });
  expect((await refusal(batch!))['code']).toBe('evicted');
  leaves!.hangUp();
  await gateway.has('m', 1, 2);
  expect(await backend.serveOneByOne(2)).toEqual(['critical', 'user']);
  backend.respond('user', answerOf(5, 7));
  for (const one of [critical, user!]) expect((await one.answer).status).toBe(200);
  await gateway.has('m', 0, 0);

  await until(async () => (await valuesOf(CANCELLED))[CANCELLED] === 1, 5_000, 'the cancellation');
  expect(await valuesOf(...Object.keys(AFTERWARDS))).toEqual(AFTERWARDS);
});

it('count the end of a time to live, and have a series for each code', async () => {
  gateway.ask('ttl', 'first');
  await away.holds(1);
  await refusal(gateway.ask('ttl', 'expires'));
  await refusal(gateway.ask('ttl', 'hurries', { 'x-slo-ttft-ms': '50' }));
  const expected = {
    [`requests_expired${labels('ttl')}`]: 1,
    'gateway_dropped_total{band="standard",code="queue_ttl_expired"}': 1,
    'gateway_dropped_total{band="standard",code="deadline_exceeded"}': 1,
    [`stock_level${labels('ttl')}`]: 1,
  };
  expect(await valuesOf(...Object.keys(expected))).toEqual(expected);
});

it('name no model that no pool serves', async () => {
  await gateway.ask('unknown-model', 'r').answer;
  expect(Object.keys(await gateway.metrics()).join()).not.toContain('unknown-model');
});
