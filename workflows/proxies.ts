import {
  ActivityCancellationType,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { BatchActivities, BatchSettings, BatchStepActivities } from '../activities/contract';
import { BATCH_QUEUE } from './contract';

/**
 * One policy for each class of call, with its reason. `cancellationType` is always stated: unset, the
 * server's default stops waiting at once and partial results would race with finalization
 * (temporal §0.1).
 */

/**
 * What Postgres or the store refused is tried again for ever, but never more than so long after it is
 * back. Tries cost no history, and a worker makes only a few of them at a time.
 */
const UNTIL_IT_ANSWERS = { initialInterval: '1s', maximumInterval: '10s' } as const;

/** Eager dispatch would pass by the fairness of the queue and the limits of other workers. */
const WAITING = {
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  allowEagerDispatch: false,
} as const;

/**
 * A step on the row, tried in the workflow task itself: two tries within 2 s cost no history. When
 * Postgres is away the durable twin below takes over and waits for it, however long.
 */
const localSteps = proxyLocalActivities<BatchStepActivities>({
  startToCloseTimeout: '2s',
  retry: { maximumAttempts: 2, initialInterval: '100ms' },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

const durableSteps = proxyActivities<BatchStepActivities>({
  taskQueue: BATCH_QUEUE,
  startToCloseTimeout: '10s',
  retry: UNTIL_IT_ANSWERS,
  ...WAITING,
});

/** Runs a step locally and, when that fails, as an activity that retries for ever. */
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

/** Reads the whole input: minutes for the largest; a dead worker is noticed by its heartbeat. */
export function ingestion(settings: BatchSettings): Pick<BatchActivities, 'ingest'> {
  return proxyActivities<BatchActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '1h',
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: UNTIL_IT_ANSWERS,
    ...WAITING,
    summary: 'check the input file and plan it',
  });
}

/** What the timeouts and the share of one chunk are made from. */
export interface ChunkPolicy {
  readonly settings: BatchSettings;
  readonly queue: string;
  readonly boxMs: number;
  readonly requestTimeoutMs: number;
  /** Attempts that may fail before its range is looked at more closely. */
  readonly attempts: number;
  /** It waits at the server, by attempts without a limit, and counts those that died itself. */
  readonly mayWait: boolean;
  /** Longest time in the queue; then it is taken back. Undefined: as long as it takes. */
  readonly queuedMs: number | undefined;
  readonly summary: string;
}

/** Longest that a chunk may wait for its first permit inside a worker, beside its own time. */
const PERMIT_WAIT_MS = 30_000;

/**
 * A priority outranks the tenant in Temporal's task queues, so it must never depend on a batch: with a
 * short completion window a tenant would choose its way ahead. All chunks have the default. It is set
 * all the same, since an activity inherits what is left out from its workflow; the fairness key, which
 * is the tenant, is inherited that way.
 */
const CHUNK_PRIORITY = 3;

/**
 * A chunk ends by itself with its box and the requests then in flight; this timeout catches the hung,
 * the heartbeat the dead.
 */
export function chunk(policy: ChunkPolicy): Pick<BatchActivities, 'executeChunk'> {
  const { fairnessWeight } = policy.settings;
  return proxyActivities<BatchActivities>({
    taskQueue: policy.queue,
    startToCloseTimeout: policy.boxMs + policy.requestTimeoutMs + PERMIT_WAIT_MS + 60_000,
    ...(policy.queuedMs === undefined ? {} : { scheduleToStartTimeout: policy.queuedMs }),
    heartbeatTimeout: policy.settings.heartbeatTimeoutMs,
    retry: {
      initialInterval: '100ms',
      maximumInterval: '10s',
      ...(policy.mayWait ? {} : { maximumAttempts: policy.attempts }),
    },
    ...WAITING,
    priority: {
      priorityKey: CHUNK_PRIORITY,
      ...(fairnessWeight === undefined ? {} : { fairnessWeight }),
    },
    summary: policy.summary,
  });
}

/**
 * Retried for as long as the activity itself allows: it counts the window only while a worker is at it,
 * and not at all while nobody has asked for an end. A timeout of the server would run while no worker
 * exists. A dead worker is noticed by its heartbeat, so that another delivers the files.
 */
export function finalization(settings: BatchSettings): Pick<BatchActivities, 'finalize'> {
  return proxyActivities<BatchActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '6h',
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: UNTIL_IT_ANSWERS,
    ...WAITING,
    summary: 'make the result files and end the batch',
  });
}

/** Ends by itself soon after the grace, once PostgreSQL answers. */
export function holders(settings: BatchSettings): Pick<BatchActivities, 'awaitReleased'> {
  return proxyActivities<BatchActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '6h',
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: UNTIL_IT_ANSWERS,
    ...WAITING,
    summary: 'wait for requests in flight',
  });
}

/**
 * Waits until some worker can send a model's requests. Attempts add nothing to the history, and the
 * UI shows what it waits for.
 */
export const routing: Pick<BatchActivities, 'awaitRoute'> = proxyActivities<BatchActivities>({
  taskQueue: BATCH_QUEUE,
  startToCloseTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '20s' },
  ...WAITING,
});

/**
 * Reads lines and journals their ends; on the batch queue, since no worker serves the model's own. An
 * attempt on a worker that does not know the activity fails, and another worker takes it.
 */
export function unrouted(
  settings: BatchSettings,
  summary: string,
): Pick<BatchActivities, 'endUnrouted'> {
  return proxyActivities<BatchActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '1h',
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: UNTIL_IT_ANSWERS,
    ...WAITING,
    summary,
  });
}

/** The last word on a batch that could not be finalized: waits for Postgres for ever. */
export const lastResort: Pick<BatchActivities, 'recordUnfinalized'> =
  proxyActivities<BatchActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '1m',
    retry: UNTIL_IT_ANSWERS,
    ...WAITING,
    summary: 'end the batch without result files',
  });
