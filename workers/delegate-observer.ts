import type { DelegateObserver } from '../activities/delegate/observer';
import type { WorkerMetrics } from '../platform/worker-metrics';

/** Counts what happens to jobs at providers. */
export function createDelegateObserver(metrics: WorkerMetrics): DelegateObserver {
  return {
    called: (provider, call, outcome) => metrics.providerCalls.inc({ provider, call, outcome }),
    adopted: (provider) => metrics.providerJobsAdopted.inc({ provider }),
    abandoned: ({ provider, model, lines }) =>
      metrics.providerLinesAbandoned.inc({ provider, model }, lines),
    jobEnded: ({ provider, status, tookMs }) => {
      metrics.providerJobs.inc({ provider, status });
      metrics.providerJobDuration.observe({ provider }, tookMs / 1000);
    },
    collected: ({ provider, model, costUsd, ...lines }) => {
      for (const [outcome, count] of Object.entries(lines)) {
        if (count > 0) metrics.providerLines.inc({ provider, model, outcome }, count);
      }
      if (costUsd !== null) metrics.providerCost.inc({ provider, model }, costUsd);
    },
  };
}
