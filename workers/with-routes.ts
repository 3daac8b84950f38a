import type { PlannedModel, PlannedOrInvalid } from '../activities/contract';
import { planDelegate } from './plan-delegates';
import type { IngestResult } from '../activities/ingest/outcome';
import type { Config } from '../platform/config-schema';
import type { BatchRow } from '../storage/postgres/batches/types';
import { delegateQueue, EXEC_QUEUE } from '../workflows/contract';
import type { RouteDirectory } from './route-directory';

/** What the routes of a plan come from. */
export interface RouteSources {
  readonly routes: Pick<RouteDirectory, 'routeOf' | 'isKnown'>;
  readonly config: Config;
  /** Null if the batch has no row. */
  readonly row: BatchRow | null;
}

/** Placeholder for a model without a route. The workflow looks up its route before its first chunk. */
const NO_ROUTE = { queue: EXEC_QUEUE, requestTimeoutMs: 60_000 };

/** The result in its wire format, with the route of each planned model: its provider, its gateway, or both. */
export function withRoutes(result: IngestResult, sources: RouteSources): PlannedOrInvalid {
  if (result.kind === 'invalid') return result;
  return { ...result, models: result.models.map((model) => withRoute(model, sources)) };
}

/** Adds whether Temporal may be given the providers of the plan, if it has any. */
export async function withProviders(
  result: PlannedOrInvalid,
  showsProviders: () => Promise<boolean>,
): Promise<PlannedOrInvalid> {
  if (result.kind === 'invalid') return result;
  const isDelegated = result.models.some(({ delegate }) => delegate !== undefined);
  return isDelegated && (await showsProviders()) ? { ...result, showsProviders: true } : result;
}

type IngestedModel = (IngestResult & { kind: 'planned' })['models'][number];

function withRoute(
  { safeModel, ...planned }: IngestedModel,
  { routes, config, row }: RouteSources,
): PlannedModel {
  const { model, entries } = planned;
  const hasGateway = routes.isKnown(model);
  const route = { safe: safeModel, ...(routes.routeOf(model, row?.endpoint) ?? NO_ROUTE) };
  const settings = { config, queueOf: delegateQueue };
  const delegate =
    row === null ? null : planDelegate({ model, entries, hasGateway }, row, settings);
  if (delegate !== null) return { ...planned, ...route, delegate };
  // A delegated model of a batch that is excluded, and that no gateway serves, ends as any other unknown one.
  const isLost = config.delegates[model] !== undefined && !hasGateway;
  return isLost ? { ...planned, ...route, undecided: true } : { ...planned, ...route };
}
