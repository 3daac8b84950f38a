import type { PoolSettings } from '../../core/dispatch/pool/pool-settings';
import { POOL_DEFAULTS } from '../../core/dispatch/pool/pool-settings';
import type { FlowConfig } from '../../platform/config-gateway';
import type { AudioConfig } from '../../platform/config-audio';

/**
 * What the controller of the audio pool is given (docs/design/audio-scheduling.md#the-queue). With several gateways,
 * each one gets its part of the capacities.
 */
export function audioPoolSettings(
  { replicas, queue_bytes: queueBytes, sheddable_bytes: sheddableBytes }: FlowConfig,
  { fair_request_queue: queue, scheduler }: AudioConfig,
): PoolSettings {
  const part = (capacity: number) => Math.max(1, Math.floor(capacity / replicas));
  return {
    fairRequestQueue: {
      totalCapacity: part(queue.total_capacity),
      flowCapacity: part(queue.flow_capacity),
      sheddableCapacity: part(queue.sheddable_capacity),
      ...{ queueBytes, sheddableBytes },
      queueTtlMs: queue.queue_ttl,
      batchQueueTtlMs: queue.batch_queue_ttl,
      noBackendTtlMs: queue.no_backend_ttl,
      scheduler: 'start',
      enqueue: 'all',
    },
    requestQueueController: POOL_DEFAULTS.requestQueueController,
    bands: {
      ...POOL_DEFAULTS.bands,
      between: 'strict',
      // The slots are the limit, and leave a place for users by themselves.
      ceilings: [1, 1, 1],
      promoteAfterMs: scheduler.aging_threshold,
    },
  };
}
