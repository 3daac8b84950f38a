import type { RuleTest } from './promtool';

const OWN = 'job="nightshift-gateway",instance="gateway-1"';

/** A gateway with two audio workers that are busy with batches. */
const BUSY = {
  'up{job="nightshift-api",instance="api-1"}': '1x60',
  'up{job="nightshift-worker",instance="worker-1"}': '1x60',
  'batch_reconciler_cycle_duration_seconds_count{job="nightshift-worker",instance="worker-1"}':
    '1+1x60',
  [`up{${OWN}}`]: '1x60',
  [`process_start_time_seconds{${OWN}}`]: '1000x60',
  [`audio_worker_ready{worker="a:8003",${OWN}}`]: '1x60',
  [`audio_worker_ready{worker="b:8003",${OWN}}`]: '1x60',
  [`scheduler_queue_depth{priority="BATCH",${OWN}}`]: '500x60',
  [`scheduler_aging_promotions_total{${OWN}}`]: '0+1x60',
  [`audio_spool_bytes{${OWN}}`]: '2000x60',
  [`audio_spool_max_bytes{${OWN}}`]: '4000x60',
  // Now and then one waits.
  [`scheduler_queue_depth{priority="REALTIME",${OWN}}`]: '0x5 2x2 0x53',
  // Now and then somebody cancels what a worker cannot stop.
  [`audio_worker_slots{worker="a:8003",state="quarantined",${OWN}}`]: '0x20 1 0x40',
};

/** A fault from minute 10 on, as it shows in some series. */
function fault(
  name: string,
  series: Readonly<Record<string, string>>,
  firing: readonly string[],
): RuleTest {
  const expected = [
    { atMin: 9, firing: [] },
    { atMin: 28, firing },
  ];
  return { name, series: { ...BUSY, ...series }, expected };
}

/** Faults of audio workers. */
export const AUDIO_FAULTS: readonly RuleTest[] = [
  fault('audio workers are busy with batches', {}, []),
  fault(
    'one of two audio workers is gone',
    { [`audio_worker_ready{worker="a:8003",${OWN}}`]: '1x10 0x50' },
    ['NightshiftAudioWorkerNotReady'],
  ),
  fault(
    'all audio workers are gone',
    {
      [`audio_worker_ready{worker="a:8003",${OWN}}`]: '1x10 0x50',
      [`audio_worker_ready{worker="b:8003",${OWN}}`]: '1x10 0x50',
    },
    ['NightshiftAudioWorkerNotReady', 'NightshiftNoAudioWorker'],
  ),
  fault(
    'urgent requests wait all the time',
    { [`scheduler_queue_depth{priority="REALTIME",${OWN}}`]: '0x10 4x50' },
    ['NightshiftUrgentAudioWaits'],
  ),
  fault(
    'recordings of users age in the queue',
    { [`scheduler_aging_promotions_total{${OWN}}`]: '0x10 4+4x50' },
    ['NightshiftRecordingsAge'],
  ),
  fault('the spool is nearly full', { [`audio_spool_bytes{${OWN}}`]: '2000x10 3900x50' }, [
    'NightshiftSpoolNearLimit',
  ]),
  fault(
    'a worker ignores every cancel',
    { [`audio_worker_slots{worker="a:8003",state="quarantined",${OWN}}`]: '0x10 1x50' },
    ['NightshiftAudioCancelsIgnored'],
  ),
];
