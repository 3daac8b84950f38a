import type { AudioMetrics } from '../../platform/audio-metrics';
import type { AudioObserver, EndedJob } from './audio-observer';

type PoolMetrics = Pick<
  AudioMetrics,
  'queueWait' | 'grpcDuration' | 'cancelLatency' | 'batchSize' | 'requests' | 'addAudioSeconds'
>;

/** Counts what the audio pool does. */
export function metricObserver(metrics: PoolMetrics): AudioObserver {
  return {
    onCall: ({ priority, ms, items }) => {
      metrics.grpcDuration.observe(ms / 1_000);
      if (priority === 'BATCH') metrics.batchSize.observe(items);
    },
    onCancelled: (ms) => metrics.cancelLatency.observe(ms / 1_000),
    onEnded: (job) => {
      if (!job.wasAdmitted) return;
      metrics.requests.inc({ priority: job.priority, status: statusOf(job) });
      if (job.latency !== null) metrics.queueWait.observe(job.latency.queueWaitMs / 1_000);
      if (job.audioSec > 0) metrics.addAudioSeconds(job.model, job.task, job.audioSec);
    },
  };
}

/** How a job ended, as metrics count it. */
export function statusOf({ outcome }: Pick<EndedJob, 'outcome'>): string {
  if (outcome.kind !== 'fault') return 'completed';
  const { code } = outcome;
  return code === 'cancelled' || code === 'client_closed' ? 'cancelled' : 'failed';
}
