import type { ExecuteObserver } from '../activities/execute/observer';
import type { WorkerMetrics } from '../platform/worker-metrics';

/**
 * Feeds the metrics of seed 000 from what chunks report. Labelled children are kept per model: to look
 * them up for every request costs a worker 1 % of its time.
 */
export function createRequestObserver(metrics: WorkerMetrics): ExecuteObserver {
  const byModel = new Map<string, ReturnType<typeof childrenOf>>();
  const childrenFor = (model: string): ReturnType<typeof childrenOf> => {
    const known = byModel.get(model);
    if (known !== undefined) return known;
    const children = childrenOf(metrics, model);
    byModel.set(model, children);
    return children;
  };
  return {
    chunkStarted: () => metrics.activeWorkers.inc(),
    chunkEnded: () => metrics.activeWorkers.dec(),
    requestStarted: (model) => {
      metrics.inflightRequests.inc();
      childrenFor(model).inflight.inc();
    },
    requestEnded: (model, tookMs, ok) => {
      const children = childrenFor(model);
      metrics.inflightRequests.dec();
      children.inflight.dec();
      children.duration.observe(tookMs / 1000);
      if (!ok) children.errors.inc();
    },
    requestRetried: (model) => childrenFor(model).retries.inc(),
    tokens: (model, usage) => {
      const children = childrenFor(model);
      children.promptTokens.inc(usage.inputTokens);
      children.generationTokens.inc(usage.outputTokens);
    },
  };
}

function childrenOf(metrics: WorkerMetrics, model: string) {
  return {
    inflight: metrics.modelInflightRequests.labels({ model }),
    duration: metrics.requestDuration.labels({ model }),
    errors: metrics.requestErrors.labels({ model }),
    retries: metrics.requestRetries.labels({ model }),
    promptTokens: metrics.promptTokens.labels({ model }),
    generationTokens: metrics.generationTokens.labels({ model }),
  };
}
