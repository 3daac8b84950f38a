import {
  ActivityCancellationType,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { ActivityOptions } from '@temporalio/workflow';
import type {
  BatchActivities,
  BatchSettings,
  BatchStepActivities,
  SmallBatchActivities,
} from '../activities/contract';
import { attemptMs, MAX_HOLD_MS } from '../core/chunks/hold-limit';
import { PRIORITY } from '../core/chunks/priority';
import { BATCH_QUEUE, EXEC_QUEUE } from './contract';

/*
 * How a batch calls its activities: one policy for each class of call, with the reason for its timeouts
 * and attempts (docs/design/temporal.md#timeouts-and-retries). None has a schedule-to-close timeout: it
 * would run while no worker exists, and an outage must not end a batch.
 */

/**
 * Retries without a limit, at least every 10 s: a call that fails during an outage of PostgreSQL or the
 * object store succeeds soon after it. Failed attempts add no events to the history.
 */
const UNTIL_IT_SUCCEEDS = { initialInterval: '1s', maximumInterval: '10s' } as const;

/**
 * A cancelled activity is awaited until it has returned, so that its partial results do not race with
 * finalization. The cancellation type is always stated, because the default stops waiting at once. Eager
 * dispatch is off: it would bypass the fairness of the queue and the limits of other workers
 * (docs/design/temporal.md#cancellation-type).
 */
export const AWAITED = {
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  allowEagerDispatch: false,
} as const;

/**
 * A step on the row, run within the workflow task. Both attempts together, of at most 2 s each, cost one
 * marker event.
 */
const localSteps = proxyLocalActivities<BatchStepActivities>({
  startToCloseTimeout: '2s',
  retry: { maximumAttempts: 2, initialInterval: '100ms' },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

/** The same step as a normal activity, which outlasts an outage of PostgreSQL. */
const durableSteps = proxyActivities<BatchStepActivities>({
  taskQueue: BATCH_QUEUE,
  startToCloseTimeout: '10s',
  retry: UNTIL_IT_SUCCEEDS,
  ...AWAITED,
});

/**
 * Runs a step as a local activity and, if that fails, as an activity that is tried again without a limit
 * (docs/design/temporal.md#local-activities).
 */
export async function step<K extends keyof BatchStepActivities>(
  name: K,
  input: Parameters<BatchStepActivities[K]>[0],
): Promise<Awaited<ReturnType<BatchStepActivities[K]>>> {
  type Step = (input: unknown) => Promise<Awaited<ReturnType<BatchStepActivities[K]>>>;
  try {
    return await (localSteps[name] as Step)(input);
  } catch {
    return (durableSteps[name] as Step)(input);
  }
}

/** Reads the whole input: minutes for the largest file, so an hour catches an attempt that hangs. */
export function ingestActivity(settings: BatchSettings): BatchActivities['ingest'] {
  return longActivities(settings, '1h', 'check the input file and plan it').ingest;
}

/**
 * Writes the result files: hours for the largest batch. The activity itself enforces the finalization
 * window, which counts only while a worker works on it, and only once the batch must end.
 */
export function finalizeActivity(settings: BatchSettings): BatchActivities['finalize'] {
  return longActivities(settings, '6h', 'make the result files and end the batch').finalize;
}

/** Waits until no chunk of the batch is running, at most until shortly after the grace. */
export function awaitReleasedActivity(settings: BatchSettings): BatchActivities['awaitReleased'] {
  return longActivities(settings, '6h', 'wait for requests in flight').awaitReleased;
}

/**
 * Ends lines of a model that no worker can send. It runs on the batch queue, because no worker serves the
 * model's own queue. A range of 10,000 lines takes a second or two; an hour catches an attempt that hangs.
 */
export function endUnroutedActivity(
  settings: BatchSettings,
  summary: string,
): BatchActivities['endUnrouted'] {
  return longActivities(settings, '1h', summary).endUnrouted;
}

/** Activities that take long. If heartbeats stop, the worker is dead and another one takes over. */
function longActivities(
  settings: BatchSettings,
  startToCloseTimeout: '1h' | '6h',
  summary: string,
): BatchActivities {
  return proxyActivities<BatchActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout,
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: UNTIL_IT_SUCCEEDS,
    ...AWAITED,
    summary,
  });
}

/** What the timeouts, attempts and priority of one chunk are made from. */
export interface ChunkPolicy {
  readonly settings: BatchSettings;
  readonly queue: string;
  readonly timeSliceMs: number;
  readonly requestTimeoutMs: number;
  /** A gateway has held a chunk of the model, so an attempt may last longer. */
  readonly mayBeHeld: boolean;
  /** Attempts that may fail before the range is halved or counted as a suspect. */
  readonly attempts: number;
  /** The chunk may wait at the server: its attempts are unlimited, and it counts crashes itself. */
  readonly mayWait: boolean;
  /** Longest time in the queue, after which the chunk is taken back; undefined: no limit. */
  readonly scheduleToStartMs: number | undefined;
  readonly summary: string;
}

/** Answers one chunk of a model. */
export function executeChunkActivity(policy: ChunkPolicy): BatchActivities['executeChunk'] {
  return proxyActivities<BatchActivities>({
    taskQueue: policy.queue,
    ...chunkTimeouts(policy),
    retry: chunkRetry(policy),
    ...AWAITED,
    priority: chunkPriority(policy.settings),
    summary: policy.summary,
  }).executeChunk;
}

/**
 * An attempt ends by itself after its time slice, when the requests then in flight have ended. So the
 * start-to-close timeout only catches an attempt that hangs. The heartbeat timeout detects a dead worker
 * sooner. An attempt whose requests a gateway holds tells from this timeout how long it may stay
 * (docs/design/held-requests.md#held-chunks). The schedule-to-start timeout takes a chunk back from a queue that no worker serves any more, so
 * that it can be routed anew.
 */
function chunkTimeouts(policy: ChunkPolicy) {
  const { timeSliceMs, requestTimeoutMs, mayBeHeld, scheduleToStartMs, settings } = policy;
  const sendingMs = mayBeHeld ? Math.max(timeSliceMs, MAX_HOLD_MS) : timeSliceMs;
  return {
    startToCloseTimeout: attemptMs({ sendingMs, requestTimeoutMs }),
    ...(scheduleToStartMs === undefined ? {} : { scheduleToStartTimeout: scheduleToStartMs }),
    heartbeatTimeout: settings.heartbeatTimeoutMs,
  };
}

/**
 * Few attempts, because repeated failures point at a line of the chunk. A chunk that waits at the server
 * has unlimited attempts, because each attempt that cannot send anything fails.
 */
function chunkRetry({ mayWait, attempts }: ChunkPolicy): NonNullable<ActivityOptions['retry']> {
  return {
    initialInterval: '100ms',
    maximumInterval: '10s',
    ...(mayWait ? {} : { maximumAttempts: attempts }),
  };
}

/** What the timeouts of the activity of a small batch are made from. */
export interface SmallBatchPolicy {
  readonly settings: BatchSettings;
  readonly timeSliceMs: number;
  readonly requestTimeoutMs: number;
}

/**
 * Does all of a small batch. It is tried once: whatever goes wrong, the workflow goes on step by step, with the policy
 * of each step. So a line that kills workers is found like any other (docs/design/execution.md#small-batches).
 */
export function smallBatchActivity(
  policy: SmallBatchPolicy,
): SmallBatchActivities['runSmallBatch'] {
  const { settings, timeSliceMs, requestTimeoutMs } = policy;
  return proxyActivities<SmallBatchActivities>({
    taskQueue: EXEC_QUEUE,
    startToCloseTimeout: attemptMs({ sendingMs: timeSliceMs, requestTimeoutMs }),
    scheduleToStartTimeout: settings.queuedWarningMs ?? '5m',
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: { maximumAttempts: 1 },
    ...AWAITED,
    priority: chunkPriority(settings),
    summary: 'read, send and end a small batch',
  }).runSmallBatch;
}

/**
 * All chunks have the same priority. In a task queue of Temporal a priority outranks the fairness key,
 * which is the tenant. If the priority followed the batch's deadline, a tenant could choose a short
 * completion window and pass all others. The priority key must be given, because an activity inherits
 * missing fields from its workflow. The fairness key is left out for the same reason: it is inherited
 * (docs/design/temporal.md#fairness-and-priority).
 */
function chunkPriority({
  fairnessWeight,
}: BatchSettings): NonNullable<ActivityOptions['priority']> {
  return {
    priorityKey: PRIORITY.normal,
    ...(fairnessWeight === undefined ? {} : { fairnessWeight }),
  };
}

/**
 * Waits until a worker can send a model's requests. Each attempt without a route fails and is retried,
 * without a limit and without events in the history. The failure tells the Temporal UI what it waits for.
 */
export const awaitRouteActivity: BatchActivities['awaitRoute'] = proxyActivities<BatchActivities>({
  taskQueue: BATCH_QUEUE,
  startToCloseTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '20s' },
  ...AWAITED,
}).awaitRoute;

/** Records the end of a batch that could not be finalized. It waits for PostgreSQL without a limit. */
export const recordUnfinalizedActivity: BatchActivities['recordUnfinalized'] =
  proxyActivities<BatchActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '1m',
    retry: UNTIL_IT_SUCCEEDS,
    ...AWAITED,
    summary: 'end the batch without result files',
  }).recordUnfinalized;
