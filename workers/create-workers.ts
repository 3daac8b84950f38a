import type { NativeConnection, WorkerOptions } from '@temporalio/worker';
import { Worker } from '@temporalio/worker';
import type { Config } from '../platform/config-schema';
import { BATCH_QUEUE } from '../workflows/contract';
import type { WorkerActivities } from './wiring';

export interface CreateWorkersOptions {
  readonly connection: NativeConnection;
  readonly namespace: string;
  /** Encodes payloads for Temporal; `null` leaves them readable. */
  readonly dataConverter?: WorkerOptions['dataConverter'] | null;
  readonly config: Pick<Config, 'worker'>;
  readonly activities: WorkerActivities;
  /** Task queues of the gateways this worker serves. */
  readonly execQueues: readonly string[];
  readonly workflowBundle: NonNullable<WorkerOptions['workflowBundle']>;
  readonly plugins: NonNullable<WorkerOptions['plugins']>;
  /** How long running chunks may finish after the stop. */
  readonly drainBudgetMs: number;
  readonly identity: string;
}

/**
 * Polls of each queue for activities. A worker that is frozen takes tasks with those it has open, and
 * each is lost for a heartbeat timeout: two find all the work there is (activities last for seconds),
 * ten (the SDK's default) held chunks up for more than twice as long.
 */
const ACTIVITY_POLLS = { type: 'simple-maximum', maximum: 2 } as const;

/**
 * One Temporal worker for workflows, ingestion and records, and one for the chunks of each route, all
 * on one connection. Whoever calls runs them and shuts them down.
 */
export async function createWorkers(options: CreateWorkersOptions): Promise<Worker[]> {
  const { executeChunk, ...batchActivities } = options.activities;
  const shared = sharedOptions(options);
  const batch = Worker.create({
    ...shared,
    taskQueue: BATCH_QUEUE,
    workflowBundle: options.workflowBundle,
    activities: batchActivities,
    // Ingestion and finalization stream whole files: not too many at a time keep memory flat.
    maxConcurrentActivityTaskExecutions: 16,
    // A workflow task waits this long for a worker that died before another may take it.
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
  // A cancel reaches a running activity with the answer to a heartbeat: 2 s at most (temporal §0.4). Two
  // of three heartbeats may come late before an attempt is taken for dead.
  const heartbeatMs = Math.min(2_000, Math.floor(options.config.worker.heartbeat_timeout / 3));
  return {
    connection: options.connection,
    namespace: options.namespace,
    ...(options.dataConverter ? { dataConverter: options.dataConverter } : {}),
    identity: options.identity,
    plugins: options.plugins,
    activityTaskPollerBehavior: ACTIVITY_POLLS,
    // Eager dispatch would pass by the queue's fairness and this worker's slots.
    maxEagerActivityReservationsPerWorkflowTask: 0,
    maxHeartbeatThrottleInterval: heartbeatMs,
    defaultHeartbeatThrottleInterval: heartbeatMs,
    // Chunks heed the drain signal at once; the SDK's own cancel comes when the budget is over.
    shutdownGraceTime: options.drainBudgetMs,
    shutdownForceTime: options.drainBudgetMs + 10_000,
  } satisfies Partial<WorkerOptions>;
}
