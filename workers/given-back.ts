import type { WorkerMetrics } from '../platform/worker-metrics';

/** Counts batches whose rest this process gives back because it shuts down; each batch once. */
export type GivenBack = (batchId: string) => void;

/**
 * A {@link GivenBack}. `isGuardTripped`: the process ends itself because its permits cannot be trusted
 * (docs/metrics.md#results-and-reasons).
 */
export function createGivenBack(
  { jobsProcessed }: Pick<WorkerMetrics, 'jobsProcessed'>,
  isGuardTripped: () => boolean,
): GivenBack {
  // Only a process that shuts down adds to it.
  const counted = new Set<string>();
  return (batchId) => {
    if (counted.has(batchId)) return;
    counted.add(batchId);
    const reason = isGuardTripped() ? 'guard_shutdown' : 'none';
    jobsProcessed.inc({ result: 're_enqueued', reason });
  };
}
