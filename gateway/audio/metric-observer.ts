import type { AudioMetrics } from '../../platform/audio-metrics';
import type { AudioObserver, EndedJob } from './audio-observer';

type PoolMetrics = Pick<
  AudioMetrics,
  | 'queueWait'
  | 'grpcDuration'
  | 'cancelLatency'
  | 'batchSize'
  | 'requests'
  | 'addAudioSeconds'
  | 'speech'
  | 'synthesis'
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
      const status = statusOf(job);
      metrics.requests.inc({ priority: job.priority, status });
      if (job.task === 'speak') {
        metrics.speech.inc({ status });
        metrics.synthesis.observe((job.latency?.totalTimeMs ?? 0) / 1_000);
      }
      if (job.latency !== null) metrics.queueWait.observe(job.latency.queueWaitMs / 1_000);
      if (job.audioSec > 0) metrics.addAudioSeconds(job.model, job.task, job.audioSec);
    },
  };
}

/** How a job ended, as metrics count it. */
function statusOf({ outcome }: Pick<EndedJob, 'outcome'>): string {
  if (outcome.kind !== 'fault') return 'completed';
  const { code } = outcome;
  return code === 'cancelled' || code === 'client_closed' ? 'cancelled' : 'failed';
}
