import type { Counter } from '../../platform/metrics';
import type { StoreObserver } from './observed-store';

/** Who uses the store: a value of the label `component`. */
export type StoreComponent = 'apiserver' | 'processor' | 'garbage-collector';

/** What becomes of an operation that has failed: tried again without anyone's help, or given up. */
export type FailedStatus = 'retry' | 'exhausted';

type OperationCounter = Counter<'operation' | 'component' | 'status'>;

/**
 * Feeds `file_storage_operations_total` (docs/metrics.md#object-store). `whenFailed` is asked at each failed
 * operation: the API answers 503, so it is `exhausted`; a worker tries again, so it is `retry`.
 */
export function countOperations(
  counter: OperationCounter,
  component: StoreComponent,
  whenFailed: () => FailedStatus,
): StoreObserver {
  return (operation, outcome) => {
    const status = outcome === 'failed' ? whenFailed() : outcome;
    counter.inc({ operation, component, status });
  };
}
