import type { ExecuteObserver } from '../activities/execute/observer';
import type { WorkerMetrics } from '../platform/worker-metrics';

/** Feeds the metrics of seed 000 from what chunks report. */
export function createRequestObserver(metrics: WorkerMetrics): ExecuteObserver {
  return {
    chunkStarted: () => metrics.activeWorkers.inc(),
    chunkEnded: () => metrics.activeWorkers.dec(),
    requestStarted: (model) => {
      metrics.inflightRequests.inc();
      metrics.modelInflightRequests.inc({ model });
    },
    requestEnded: ({ model, tookMs, usage }) => {
      metrics.inflightRequests.dec();
      metrics.modelInflightRequests.dec({ model });
      metrics.requestDuration.observe({ model }, tookMs / 1000);
      if (usage === null) {
        metrics.requestErrors.inc({ model });
        return;
      }
      metrics.promptTokens.inc({ model }, usage.inputTokens);
      metrics.generationTokens.inc({ model }, usage.outputTokens);
    },
  };
}
