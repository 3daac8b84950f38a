import type { NativeConnection, WorkerOptions, WorkerTuner } from '@temporalio/worker';
import { Worker } from '@temporalio/worker';
import type { Config } from '../platform/config-schema';
import { BATCH_QUEUE } from '../workflows/contract';
import { ExecSlots } from './exec-slots';
import type { WorkerActivities } from './wiring';
import { deploymentOptions } from './workflow-versions';

/** What Temporal workers are made from. */
export interface CreateWorkersOptions {
  readonly connection: NativeConnection;
  readonly namespace: string;
  /** Encodes payloads for Temporal; null or undefined leaves them readable. */
  readonly dataConverter?: WorkerOptions['dataConverter'] | null;
  readonly config: Pick<Config, 'worker' | 'temporal'>;
  readonly activities: WorkerActivities;
  /** Task queues of the models that this worker can send. */
  readonly execQueues: readonly string[];
  /** Task queues of the providers that this worker can call. */
  readonly delegateQueues: readonly string[];
  /** Needed for the role `batch`. */
  readonly workflowBundle: NonNullable<WorkerOptions['workflowBundle']>;
  /** Which patches of the workflow code are active; by default all. */
  readonly patches?: Pick<WorkerOptions, 'patchActivationCallback'>;
  readonly plugins: NonNullable<WorkerOptions['plugins']>;
  /** How long chunks may finish after a shutdown began, ms. */
  readonly drainBudgetMs: number;
  readonly identity: string;
}

/** Steps of batches, other than chunks, that run at once. */
const BATCH_SLOTS = 16;

/** Activities that call a provider. */
const PROVIDER_ACTIVITIES = ['submitJob', 'watchJob', 'collectJob'] as const;
/** Parts of one provider that are staged or collected at once; a look at a job takes a slot for a moment. */
const DELEGATE_SLOTS = 8;

/** Slots of a process in which steps of batches run: the value of `total_workers` (docs/metrics.md#workers). */
export function slotsOf({ worker: { roles, exec_slots } }: Pick<Config, 'worker'>): number {
  return (roles.includes('batch') ? BATCH_SLOTS : 0) + (roles.includes('exec') ? exec_slots : 0);
}

/**
 * Open polls for activities per queue. A frozen worker receives one task for each open poll, and each of
 * these tasks is stuck until its heartbeat timeout. Two polls are enough to stay busy, because activities
 * last for seconds. With the SDK's default of ten, a frozen worker delayed chunks more than twice as long
 * (docs/design/execution.md#late-attempts).
 */
const ACTIVITY_POLLS = { type: 'simple-maximum', maximum: 2 } as const;

/** Slots for task types that an execution queue never has; the SDK wants some. */
const NO_TASKS = { type: 'fixed-size', numSlots: 2 } as const;

/**
 * Creates the Temporal workers of this process's roles, all on one connection: `batch` one for workflows
 * and all activities except chunks, `exec` one for the chunks of each queue. The caller runs them and shuts
 * them down.
 */
export async function createWorkers(options: CreateWorkersOptions): Promise<Worker[]> {
  const { roles } = options.config.worker;
  return Promise.all([
    ...(roles.includes('batch') ? [createBatchWorker(options)] : []),
    ...(roles.includes('exec') ? createExecWorkers(options) : []),
    ...(roles.includes('exec') ? createDelegateWorkers(options) : []),
  ]);
}

function createBatchWorker(options: CreateWorkersOptions): Promise<Worker> {
  const batchActivities: Partial<WorkerActivities> = { ...options.activities };
  delete batchActivities.executeChunk;
  delete batchActivities.runSmallBatch;
  for (const name of PROVIDER_ACTIVITIES) delete batchActivities[name];
  return Worker.create({
    ...sharedOptions(options),
    taskQueue: BATCH_QUEUE,
    workflowBundle: options.workflowBundle,
    ...options.patches,
    activities: batchActivities,
    // Ingestion and finalization stream whole files. This limit keeps memory bounded.
    maxConcurrentActivityTaskExecutions: BATCH_SLOTS,
    // If a worker dies, another one takes over its workflow tasks after this time.
    stickyQueueScheduleToStartTimeout: '2s',
  });
}

/** One per provider, so that a slow provider holds up no other. */
function createDelegateWorkers(options: CreateWorkersOptions): Promise<Worker>[] {
  const { submitJob, watchJob, collectJob } = options.activities;
  return options.delegateQueues.map((taskQueue) =>
    Worker.create({
      ...sharedOptions(options),
      taskQueue,
      activities: { submitJob, watchJob, collectJob },
      maxConcurrentActivityTaskExecutions: DELEGATE_SLOTS,
    }),
  );
}

function createExecWorkers(options: CreateWorkersOptions): Promise<Worker>[] {
  const { executeChunk, runSmallBatch } = options.activities;
  const activities = { executeChunk, runSmallBatch };
  const slots = new ExecSlots(options.config.worker.exec_slots);
  const tuner: WorkerTuner = {
    activityTaskSlotSupplier: slots,
    workflowTaskSlotSupplier: NO_TASKS,
    localActivityTaskSlotSupplier: NO_TASKS,
    nexusTaskSlotSupplier: NO_TASKS,
  };
  return options.execQueues.map((taskQueue) =>
    Worker.create({ ...sharedOptions(options), taskQueue, activities, tuner }),
  );
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
    ...deploymentOptions(options.config.temporal),
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
