import type { Client, ScheduleOptions } from '@temporalio/client';
import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import { BATCH_QUEUE, MAINTENANCE_WORKFLOWS } from '../workflows/contract';
import { openClient } from './connection';
import type { TemporalConfig } from './temporal-credentials';
import { untilSettled } from './until-settled';

/** Ids of the schedules. The ids of their workflows begin with them. */
export const SCHEDULES = { reconcile: 'nightshift-reconcile', sweep: 'nightshift-sweep' } as const;

const DEFINITIONS: readonly ScheduleOptions[] = [
  schedule(SCHEDULES.reconcile, MAINTENANCE_WORKFLOWS.reconcile, '1m'),
  schedule(SCHEDULES.sweep, MAINTENANCE_WORKFLOWS.sweep, '10m'),
];

/**
 * One run at a time. Runs that an outage prevented are not made up for, because one run does all the work
 * (docs/design/temporal.md#schedules).
 */
function schedule(scheduleId: string, workflowType: string, every: '1m' | '10m'): ScheduleOptions {
  return {
    scheduleId,
    spec: { intervals: [{ every }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: every },
    action: {
      type: 'startWorkflow',
      workflowType,
      workflowId: scheduleId,
      taskQueue: BATCH_QUEUE,
      args: [{}],
      // A run that hangs must not prevent all later ones.
      workflowExecutionTimeout: '1h',
    },
  };
}

/** Creates missing schedules, and leaves existing ones as they are. True if it created one. */
export async function createSchedules(client: Client): Promise<boolean> {
  let isAnyNew = false;
  for (const definition of DEFINITIONS) {
    if (await createIfMissing(client, definition)) isAnyNew = true;
  }
  return isAnyNew;
}

/**
 * Creates the schedules, or updates them to this version's definition. A paused one stays paused.
 * Idempotent. @throws temporal_unavailable
 */
export async function prepareSchedules(config: TemporalConfig): Promise<void> {
  const client = openClient(config);
  try {
    for (const definition of DEFINITIONS) {
      const what = `the schedule ${definition.scheduleId}`;
      await untilSettled(() => prepareSchedule(client, definition), { what });
    }
  } finally {
    await client.connection.close();
  }
}

async function prepareSchedule(client: Client, definition: ScheduleOptions): Promise<void> {
  if (await createIfMissing(client, definition)) return;
  const { scheduleId, spec, policies, action } = definition;
  await client.schedule.getHandle(scheduleId).update(({ state }) => ({
    state,
    spec,
    ...(policies === undefined ? {} : { policies }),
    action: { ...action, workflowId: scheduleId },
  }));
}

/** Starts reconcile now, unless it runs already. */
export async function triggerReconcile(client: Client): Promise<void> {
  await client.schedule.getHandle(SCHEDULES.reconcile).trigger(ScheduleOverlapPolicy.SKIP);
}

async function createIfMissing(client: Client, definition: ScheduleOptions): Promise<boolean> {
  try {
    await client.schedule.create(definition);
    return true;
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return false;
    throw error;
  }
}
