import type { PlannedOrInvalid } from '../activities/contract';
import { endpointRule } from '../core/openai/endpoints';
import type { ModelLimit } from '../inference/dispatcher';
import type { Registry } from '../inference/registry';

/** What this process can send. */
export interface Sending {
  readonly registry: Pick<Registry, 'route'>;
  readonly dispatcher: { limitOf(model: string): ModelLimit };
  /** Whether its permits are borrowed, so that it does not know how many requests it may send. */
  readonly sharesPermits: boolean;
}

/**
 * Opens the connections for the first requests of a batch that has a plan. While the workflow schedules its chunks, this
 * thread is idle, and 256 connections take it 15 to 30 ms (docs/design/batch-path.md#the-first-requests). Connections
 * that no request uses are closed when they have been idle. Recordings go out through other ones.
 */
export function prepareSending(plan: PlannedOrInvalid, endpoint: string, sending: Sending): void {
  const { registry, dispatcher, sharesPermits } = sending;
  if (plan.kind === 'invalid' || sharesPermits || endpointRule(endpoint).namesAudio) return;
  for (const { model, entries, delegate } of plan.models) {
    const route = registry.route(model);
    if (route === null || delegate !== undefined || route.breaker.state !== 'closed') continue;
    route.backend.prepare(Math.min(entries, dispatcher.limitOf(route.limiterKey).limit));
  }
}
