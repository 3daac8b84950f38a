import { proxyActivities } from '@temporalio/workflow';
import type { BatchSettings } from '../activities/contract';
import type { DelegateActivities } from '../activities/delegate/contract';
import { AWAITED } from './activity-policies';
import { BATCH_QUEUE } from './contract';

/*
 * How a batch calls the activities of delegation (docs/design/delegation.md#activities). All have unlimited
 * attempts: an answer of the provider, the time to give up, or a stop ends them. Attempts add no events to
 * the history, so a job may be asked about for days.
 */

const RETRY = { initialInterval: '1s', maximumInterval: '30s' } as const;

/** What the policies of a delegated model are made from. */
export interface DelegatePolicy {
  readonly settings: BatchSettings;
  /** The provider's task queue. */
  readonly queue: string;
  readonly summary: string;
}

/** Reads and makes rows only, so it needs no worker with the provider's key. */
export function openPartsActivity(summary: string): DelegateActivities['openParts'] {
  return proxyActivities<DelegateActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '30s',
    retry: RETRY,
    ...AWAITED,
    summary,
  }).openParts;
}

/** Hours for the upload of a large part over a slow line. If heartbeats stop, the worker is dead. */
export function submitJobActivity(policy: DelegatePolicy): DelegateActivities['submitJob'] {
  return providerActivities(policy, '6h').submitJob;
}

/** One question to the provider per attempt. */
export function watchJobActivity(policy: DelegatePolicy): DelegateActivities['watchJob'] {
  return providerActivities(policy, '5m').watchJob;
}

/** Hours for the results of a large part over a slow line. */
export function collectJobActivity(policy: DelegatePolicy): DelegateActivities['collectJob'] {
  return providerActivities(policy, '6h').collectJob;
}

/** Writes error codes; a range of 10,000 lines takes a second or two. */
export function settlePartActivity({
  settings,
  summary,
}: Omit<DelegatePolicy, 'queue'>): DelegateActivities['settlePart'] {
  return proxyActivities<DelegateActivities>({
    taskQueue: BATCH_QUEUE,
    startToCloseTimeout: '1h',
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: RETRY,
    ...AWAITED,
    summary,
  }).settlePart;
}

function providerActivities(
  { settings, queue, summary }: DelegatePolicy,
  startToCloseTimeout: '5m' | '6h',
): DelegateActivities {
  return proxyActivities<DelegateActivities>({
    taskQueue: queue,
    startToCloseTimeout,
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    retry: RETRY,
    ...AWAITED,
    summary,
  });
}
