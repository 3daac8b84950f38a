import type { PlannedOrInvalid } from '../activities/contract';
import type { ModelLimit } from '../inference/dispatcher';
import type { Registry } from '../inference/registry';

/** What this process can send. */
export interface Sending {
  readonly registry: Pick<Registry, 'route'>;
  readonly dispatcher: { limitOf(model: string): ModelLimit };
}

/**
 * Opens the connections for the first requests of a batch that has a plan. While the workflow schedules its chunks, this
 * thread is idle, and 256 connections take it 15 to 30 ms (docs/design/batch-path.md#the-first-requests). Nobody may need them:
 * then they are closed when they have been idle.
 */
export function prepareSending(plan: PlannedOrInvalid, { registry, dispatcher }: Sending): void {
  if (plan.kind === 'invalid') return;
  for (const { model, entries, delegate } of plan.models) {
    const route = registry.route(model);
    if (route === null || delegate !== undefined || route.breaker.state !== 'closed') continue;
    route.backend.prepare(Math.min(entries, dispatcher.limitOf(route.limiterKey).limit));
  }
}
