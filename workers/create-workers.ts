import type { NativeConnection, WorkerOptions } from '@temporalio/worker';
import { Worker } from '@temporalio/worker';
import type { Config } from '../platform/config-schema';
import { BATCH_QUEUE } from '../workflows/contract';
import type { WorkerActivities } from './wiring';

/** What Temporal workers are made from. */
export interface CreateWorkersOptions {
  readonly connection: NativeConnection;
  readonly namespace: string;
  /** Encodes payloads for Temporal; null or undefined leaves them readable. */
  readonly dataConverter?: WorkerOptions['dataConverter'] | null;
  readonly config: Pick<Config, 'worker'>;
  readonly activities: WorkerActivities;
  /** Task queues of the models that this worker can send. */
  readonly execQueues: readonly string[];
  readonly workflowBundle: NonNullable<WorkerOptions['workflowBundle']>;
  readonly plugins: NonNullable<WorkerOptions['plugins']>;
  /** How long chunks may finish after a shutdown began, ms. */
  readonly drainBudgetMs: number;
  readonly identity: string;
}

/**
 * Open polls for activities per queue. A frozen worker receives one task for each open poll, and each of
 * these tasks is stuck until its heartbeat timeout. Two polls are enough to stay busy, because activities
 * last for seconds. With the SDK's default of ten, a frozen worker delayed chunks more than twice as long
 * (docs/design/execution.md#late-attempts).
 */
const ACTIVITY_POLLS = { type: 'simple-maximum', maximum: 2 } as const;

/**
 * Creates one Temporal worker for workflows and all activities except chunks, and one for the chunks of
 * each queue, all on one connection. The caller runs them and shuts them down.
 */
export async function createWorkers(options: CreateWorkersOptions): Promise<Worker[]> {
  const { executeChunk, ...batchActivities } = options.activities;
  const shared = sharedOptions(options);
  const batch = Worker.create({
    ...shared,
    taskQueue: BATCH_QUEUE,
    workflowBundle: options.workflowBundle,
    activities: batchActivities,
    // Ingestion and finalization stream whole files. This limit keeps memory bounded.
    maxConcurrentActivityTaskExecutions: 16,
    // If a worker dies, another one takes over its workflow tasks after this time.
    stickyQueueScheduleToStartTimeout: '2s',
  });
  const exec = options.execQueues.map((taskQueue) =>
    Worker.create({
      ...shared,
      taskQueue,
      activities: { executeChunk },
      maxConcurrentActivityTaskExecutions: options.config.worker.exec_slots,
    }),
  );
  return Promise.all([batch, ...exec]);
}

function sharedOptions(options: CreateWorkersOptions) {
  // A cancel reaches a running activity with the answer to a heartbeat, so it takes 2 s at most. Two of
  // three heartbeats may be lost before an attempt counts as dead (docs/design/temporal.md#heartbeats).
  const heartbeatMs = Math.min(2_000, Math.floor(options.config.worker.heartbeat_timeout / 3));
  return {
    connection: options.connection,
    namespace: options.namespace,
    ...(options.dataConverter ? { dataConverter: options.dataConverter } : {}),
    identity: options.identity,
    plugins: options.plugins,
    activityTaskPollerBehavior: ACTIVITY_POLLS,
    // Eager dispatch would bypass the fairness of the queue and the slots of this worker.
    maxEagerActivityReservationsPerWorkflowTask: 0,
    maxHeartbeatThrottleInterval: heartbeatMs,
    defaultHeartbeatThrottleInterval: heartbeatMs,
    // Chunks react to the drain signal at once. The SDK cancels them when the budget is over.
    shutdownGraceTime: options.drainBudgetMs,
    shutdownForceTime: options.drainBudgetMs + 10_000,
  } satisfies Partial<WorkerOptions>;
}
