import type { RuleTest } from './promtool';

const OWN = 'job="nightshift-gateway",instance="gateway-1"';

/** Series of an installation with a busy gateway, which serves one user a second. */
const BUSY = {
  'up{job="nightshift-api",instance="api-1"}': '1x40',
  'up{job="nightshift-worker",instance="worker-1"}': '1x40',
  'batch_reconciler_cycle_duration_seconds_count{job="nightshift-worker",instance="worker-1"}':
    '1+1x40',
  [`up{${OWN}}`]: '1x40',
  [`process_start_time_seconds{${OWN}}`]: '1000x40',
  [`upper_bound{pool="main",${OWN}}`]: '16x40',
  [`gateway_saturation{pool="main",${OWN}}`]: '1x40',
  // Batches always wait.
  [`gateway_queued_requests{pool="main",band="sheddable",${OWN}}`]: '50x40',
  [`gateway_queued_requests{pool="main",band="standard",${OWN}}`]: '0x40',
  [`gateway_ttfb_slowdown{pool="main",${OWN}}`]: '1.2x40',
  [`gateway_backend_ready{backend="http://a",${OWN}}`]: '1x40',
  [`gateway_dispatched_total{band="standard",by="bypass",${OWN}}`]: '0+60x40',
  [`gateway_dropped_total{band="standard",code="queue_ttl_expired",${OWN}}`]: '0x40',
  [`gateway_dropped_total{band="standard",code="client_closed",${OWN}}`]: '0+30x40',
  [`gateway_dropped_total{band="sheddable",code="queue_ttl_expired",${OWN}}`]: '0+30x40',
  [`gateway_answers_cut_total{band="standard",${OWN}}`]: '0x40',
  [`gateway_queue_bytes{${OWN}}`]: '1000x40',
  [`gateway_queued_bytes{pool="main",${OWN}}`]: '500x40',
  [`gateway_receiving_bytes{${OWN}}`]: '500x40',
};

/** A fault from minute 10 on, as it shows in one series. */
function fault(
  name: string,
  series: Readonly<Record<string, string>>,
  firing: readonly string[],
  atMin = 25,
): RuleTest {
  return {
    name,
    series: { ...BUSY, ...series },
    expected: [
      { atMin: 9, firing: [] },
      { atMin, firing },
    ],
  };
}

/**
 * Faults of a gateway, and what is none, that its recording does not show. Values are those of
 * `test/gateway/metrics-truth.test.ts`, drawn out over minutes.
 */
export const GATEWAY_FAULTS: readonly RuleTest[] = [
  fault('a gateway is busy with batches', {}, [], 38),
  fault(
    'users wait now and then',
    { [`gateway_queued_requests{pool="main",band="standard",${OWN}}`]: '0x10 3 0x3 3x2 0x30' },
    [],
  ),
  fault(
    'requests of users expire in the queue',
    {
      [`gateway_dropped_total{band="standard",code="queue_ttl_expired",${OWN}}`]: '0x10 3+3x30',
    },
    ['NightshiftUsersDropped'],
  ),
  fault(
    'a few requests of users expire',
    {
      [`gateway_dropped_total{band="standard",code="queue_ttl_expired",${OWN}}`]: '0x10 1x30',
    },
    [],
  ),
  fault(
    'the bodies that wait use all bytes',
    { [`gateway_queued_bytes{pool="main",${OWN}}`]: '500x10 950x30' },
    ['NightshiftGatewayBytesNearLimit'],
  ),
  fault(
    'a request meets a defect of the gateway',
    { [`gateway_dropped_total{band="sheddable",code="internal",${OWN}}`]: '0x10 1x30' },
    ['NightshiftGatewayDefect'],
  ),
];
