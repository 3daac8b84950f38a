import type { EndedAttempt, ExecuteObserver } from '../activities/execute/observer';
import { EXIT_REASON } from '../core/chunks/exit-reason';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { GivenBack } from './given-back';

/** Where the events of requests go, beside the metrics. */
export interface RequestObserverOptions {
  readonly metrics: WorkerMetrics;
  /** Called for each request, with its batch. */
  readonly onRequest: (batchId: string) => void;
  readonly givenBack: GivenBack;
}

/**
 * Feeds the metrics of requests and chunks. Labelled children are cached: looking them up for every request
 * costs a worker 1 % of its time.
 */
export function createRequestObserver(options: RequestObserverOptions): ExecuteObserver {
  const { metrics, onRequest, givenBack } = options;
  const { modelLabels, retriesByCause } = metrics;
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
    chunkEnded: ({ batchId, exit, tookMs }) => {
      metrics.chunkDuration.observe({ exit: EXIT_LABELS[exit] }, tookMs / 1000);
      if (exit === EXIT_REASON.drain) givenBack(batchId);
    },
    requestStarted: (model, batchId) => {
      onRequest(batchId);
      childrenFor(modelLabels.hold(model)).tally.inFlight++;
    },
    requestEnded: (model, servedMs) => {
      const children = childrenFor(modelLabels.release(model));
      children.tally.inFlight--;
      if (servedMs !== null) children.duration.observe(servedMs / 1000);
    },
    requestQueued: (model, queueMs) => {
      childrenFor(modelLabels.of(model)).queueTime.observe(queueMs / 1000);
    },
    requestDropped: (model, code) => {
      metrics.requestsDropped.inc({ model: modelLabels.of(model), code });
    },
    requestRetried: (model, cause) => {
      childrenFor(modelLabels.of(model)).tally.retries++;
      retriesByCause.inc({ cause });
    },
    requestSettled: (model, ok) => {
      const { tally } = childrenFor(modelLabels.of(model));
      tally.settled++;
      if (!ok) tally.errors++;
    },
    served: metrics.countTenantTokens,
    tokens: (model, usage) => {
      const { tally } = childrenFor(modelLabels.of(model));
      tally.promptTokens += usage.inputTokens;
      tally.generationTokens += usage.outputTokens;
    },
  };
}

/** Values of the label `exit` (docs/metrics.md#workers). Some exit reasons have names only for histories. */
const EXIT_LABELS: Readonly<Record<EndedAttempt['exit'], string>> = {
  done: 'done',
  box: 'time_slice',
  drain: 'drain',
  stopped: 'stopped',
  fenced: 'fenced',
  unheard: 'unconfirmed',
  held: 'held',
  no_permit: 'no_permit',
  breaker_open: 'breaker_open',
  unrouted: 'unrouted',
  row_terminal: 'batch_ended',
  error: 'error',
};

/** Made when the first request of a model is sent: a series that appears with its first answers shows no increase. */
function childrenOf(metrics: WorkerMetrics, model: string) {
  return {
    tally: metrics.tallyOf(model),
    duration: metrics.requestDuration.labels({ model }),
    queueTime: metrics.requestQueueTime.labels({ model }),
  };
}
