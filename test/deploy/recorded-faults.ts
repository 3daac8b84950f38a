import { GATEWAY_FAULTS } from './gateway-faults';
import { AUDIO_FAULTS } from './audio-faults';
import { PROVIDER_FAULTS } from './provider-faults';
import type { RuleTest } from './promtool';
import type { RECORDINGS } from './recording';

/** Alerts that fire at the end of each part of a recording, by the name of the part. */
type Firing = Readonly<Record<string, readonly string[]>>;

/** What the rules must make of the recordings. Rules that look back an hour keep firing in later parts. */
export const FIRING: Readonly<Record<(typeof RECORDINGS)[number], Firing>> = {
  away: {
    healthy: [],
    'PostgreSQL refuses connections': [
      'NightshiftApiErrors',
      'NightshiftPostgresAway',
      'NightshiftReconcileErrors',
      'NightshiftReconcileNotRunning',
    ],
    'PostgreSQL is back': ['NightshiftReconcileErrors'],
    'Temporal refuses connections, and a batch is due': [
      'NightshiftApiSlow',
      'NightshiftBatchOverdue',
      'NightshiftReconcileNotRunning',
      'NightshiftTemporalAway',
    ],
    'Temporal is back': [],
    'the object store is gone': [
      'NightshiftApiErrors',
      'NightshiftObjectStoreAway',
      'NightshiftObjectStoreFailing',
    ],
    'the object store is back': [],
    'the model server answers 503': ['NightshiftModelServerAway', 'NightshiftNoProgress'],
    'the model server is back': [],
  },
  frozen: {
    healthy: [],
    'the API is frozen': ['NightshiftApiDown', 'NightshiftProcessDown'],
    'the API runs again': [],
    'the worker is frozen': ['NightshiftNoWorker', 'NightshiftProcessDown'],
    'the worker runs again': ['NightshiftQueueWaitHigh'],
    'traffic is back': [],
    'PostgreSQL is slow': ['NightshiftApiSlow'],
    'PostgreSQL is fast again': [],
  },
  lost: {
    healthy: [],
    'a batch has lost its row': ['NightshiftRowsLost'],
    'its row is restored': ['NightshiftRowsLost'],
    'three workflows of a later release': ['NightshiftWorkflowTasksFail'],
    'these workflows are terminated': [],
    'a batch was created two hours ago and did not begin': [
      'NightshiftBatchStuck',
      'NightshiftReconcileNotRunning',
    ],
    'and reconcile does not run': ['NightshiftBatchStuck', 'NightshiftReconcileNotRunning'],
    'reconcile runs again': [],
    'the only worker with a gateway for a model is gone': ['NightshiftModelWithoutWorker'],
    'four batches expire': ['NightshiftBatchesExpire'],
    'five workflows are terminated': ['NightshiftBatchesExpire'],
    'a batch is open two days after its end': [
      'NightshiftBatchOverdue',
      'NightshiftBatchStuck',
      'NightshiftBatchesExpire',
      'NightshiftBatchesFail',
      'NightshiftBatchesRecovered',
    ],
  },
  load: {
    healthy: [],
    'the event loop is blocked': ['NightshiftEventLoopBlocked'],
    'the event loop is free': [],
    'the disk is slow': ['NightshiftBatchSlotsExhausted', 'NightshiftChunkSlotsExhausted'],
    'the disk is fast': [],
    'the journal is slow': ['NightshiftChunkSlotsExhausted', 'NightshiftJournalFlushSlow'],
    'the journal is fast': [],
    'one slot for twelve slow batches': [
      'NightshiftChunkSlotsExhausted',
      'NightshiftWorkerLagging',
    ],
  },
  gateway: {
    healthy: [],
    'the only model server refuses connections': [
      'NightshiftBackendNotReady',
      'NightshiftGatewaySaturated',
      'NightshiftPoolWithoutBackend',
      'NightshiftUsersDropped',
    ],
    'it listens again': [],
    'streams begin late': ['NightshiftUsersSlowed'],
    'streams begin at once': [],
    'a third of the answers breaks off': ['NightshiftAnswersCut'],
    'answers are whole': [],
    'slow senders use all bytes': ['NightshiftGatewayBytesNearLimit', 'NightshiftUsersDropped'],
    'slow senders are gone': [],
    'users want more than the model server can do': [
      'NightshiftGatewaySaturated',
      'NightshiftUsersSlowed',
    ],
    'a flood of users': [
      'NightshiftGatewayPushErrors',
      'NightshiftGatewaySaturated',
      'NightshiftUsersDropped',
      'NightshiftUsersSlowed',
    ],
    'users want less again': [],
    'the gateway is gone': ['NightshiftGatewayDown', 'NightshiftProcessDown'],
    'it is killed three times': ['NightshiftGatewayRestarts'],
  },
};

/** Series of the API and a worker beside a recording of a gateway alone. */
export const BESIDE_GATEWAY = {
  'up{job="nightshift-api",instance="api-1"}': '1x400',
  'up{job="nightshift-worker",instance="worker-1"}': '1x400',
  'batch_reconciler_cycle_duration_seconds_count{job="nightshift-worker",instance="worker-1"}':
    '1+1x400',
};

/** Series of a healthy installation. */
const HEALTHY = {
  'up{job="nightshift-api",instance="api-1"}': '1x40',
  'up{job="nightshift-worker",instance="worker-1"}': '1x40',
  'batch_reconciler_cycle_duration_seconds_count{job="nightshift-worker",instance="worker-1"}':
    '1+1x40',
};

/** Defects of the product, which cannot be injected from outside, and faults that last longer than a recording. */
export const MADE_BY_HAND: readonly RuleTest[] = [
  {
    name: 'a worker releases a permit twice',
    series: {
      ...HEALTHY,
      'jobs_processed_total{result="re_enqueued",reason="guard_shutdown",job="nightshift-worker",instance="worker-1"}':
        '0x10 1x10',
    },
    expected: [
      { atMin: 9, firing: [] },
      { atMin: 12, firing: ['NightshiftWorkerDefect'] },
    ],
  },
  {
    name: 'a workflow task fails again and again',
    series: {
      ...HEALTHY,
      'temporal_workflow_task_execution_failed{failure_reason="WorkflowError",task_queue="nightshift-batch",job="nightshift-worker",instance="worker-1"}':
        '_x10 1x4 2x4 3x4 4x10',
    },
    expected: [
      { atMin: 14, firing: [] },
      { atMin: 28, firing: ['NightshiftWorkflowTasksFail'] },
    ],
  },
  {
    name: 'reconcile ends a batch without its workflow',
    series: {
      ...HEALTHY,
      'batch_reconciler_orphans_recovered_total{action="ended",job="nightshift-worker",instance="worker-1"}':
        '0x10 1x20',
    },
    expected: [
      { atMin: 10, firing: [] },
      { atMin: 12, firing: ['NightshiftBatchEndedByLastResort'] },
    ],
  },
  {
    name: 'PostgreSQL is too slow for progress',
    series: {
      ...HEALTHY,
      'progress_write_failures_total{job="nightshift-worker",instance="worker-1"}': '0x10 1+1x15',
    },
    expected: [
      { atMin: 10, firing: [] },
      { atMin: 22, firing: ['NightshiftProgressNotWritten'] },
    ],
  },
  {
    name: 'a certificate is replaced and its key is not, after another renewal took one check',
    series: {
      ...HEALTHY,
      'credential_reloads_total{credential="temporal_certificates",result="failure",job="nightshift-worker",instance="worker-1"}':
        '0x5 2x24 8+6x10',
      'credential_reloads_total{credential="temporal_certificates",result="success",job="nightshift-worker",instance="worker-1"}':
        '0x5 2x35',
    },
    expected: [
      { atMin: 8, firing: [] },
      { atMin: 29, firing: [] },
      { atMin: 38, firing: ['NightshiftCredentialsNotReloaded'] },
    ],
  },
  {
    name: 'requests wait, and none is answered',
    series: {
      ...HEALTHY,
      'batch_waiting_lines{job="nightshift-api",instance="api-1"}': '5x40',
      'requests_settled_total{model="m",job="nightshift-worker",instance="worker-1"}': '0+1x5 5x34',
    },
    expected: [
      { atMin: 15, firing: [] },
      { atMin: 38, firing: ['NightshiftNoProgress'] },
    ],
  },
  ...GATEWAY_FAULTS,
  ...PROVIDER_FAULTS,
  ...AUDIO_FAULTS,
];
