import type { ExecuteObserver } from '../activities/execute/observer';
import type { WorkerMetrics } from '../platform/worker-metrics';

/**
 * Feeds the metrics of requests. Labelled children are cached: looking them up for every request costs a
 * worker 1 % of its time.
 */
export function createRequestObserver(metrics: WorkerMetrics): ExecuteObserver {
  const { modelLabels } = metrics;
  const byLabel = new Map<string, ReturnType<typeof childrenOf>>();
  metrics.onModelGone((model) => byLabel.delete(model));
  const childrenFor = (label: string): ReturnType<typeof childrenOf> => {
    const known = byLabel.get(label);
    if (known !== undefined) return known;
    const children = childrenOf(metrics, label);
    byLabel.set(label, children);
    return children;
  };
  return {
    chunkStarted: () => metrics.activeWorkers.inc(),
    chunkEnded: () => metrics.activeWorkers.dec(),
    requestStarted: (model) => {
      metrics.inflightRequests.inc();
      childrenFor(modelLabels.hold(model)).inflight.inc();
    },
    requestEnded: (model, tookMs, ok) => {
      const children = childrenFor(modelLabels.release(model));
      metrics.inflightRequests.dec();
      children.inflight.dec();
      children.duration.observe(tookMs / 1000);
      if (!ok) children.errors.inc();
    },
    requestRetried: (model) => childrenFor(modelLabels.of(model)).retries.inc(),
    tokens: (model, usage) => {
      const children = childrenFor(modelLabels.of(model));
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
