import type { Counter } from '../../platform/metrics';
import type { StoreObserver } from './observed-store';

/** Who uses the store: a value of the label `component`. */
export type StoreComponent = 'apiserver' | 'processor' | 'garbage-collector';

/** What becomes of an operation that has failed: tried again without anyone's help, or given up. */
export type FailedStatus = 'retry' | 'exhausted';

/** `file_storage_operations_total`. */
export type OperationCounter = Counter<'operation' | 'component' | 'status'>;

const OPERATIONS = ['store', 'retrieve', 'delete'] as const;
const STATUSES = ['success', 'retry', 'exhausted'] as const;

/**
 * Feeds `file_storage_operations_total` (docs/metrics.md#object-store). `whenFailed` is asked at each failed
 * operation: the API answers 503, so it is `exhausted`; a worker tries again, so it is `retry`.
 */
export function countOperations(
  counter: OperationCounter,
  component: StoreComponent,
  whenFailed: () => FailedStatus,
): StoreObserver {
  // A series that appears with its first failure would show no increase.
  for (const operation of OPERATIONS) {
    for (const status of STATUSES) counter.inc({ operation, component, status }, 0);
  }
  return (operation, outcome) => {
    const status = outcome === 'failed' ? whenFailed() : outcome;
    counter.inc({ operation, component, status });
  };
}
