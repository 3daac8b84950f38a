import { giveUpAtMs } from '../core/delegation/leftovers';
import { takesEndpoint } from '../core/delegation/provider-types';
import type { Config } from '../platform/config-schema';
import { fallsBack } from '../platform/config-provider-rules';
import type { BatchRow } from '../storage/postgres/batches/types';
import type { PlannedDelegate } from '../activities/delegate/planned-delegate';

/** A model of a plan, and whether it has a gateway too. */
export interface ModelToRoute {
  readonly model: string;
  readonly entries: number;
  readonly hasGateway: boolean;
}

/** What decides about delegation. */
export interface DelegationSettings {
  readonly config: Config;
  /** Task queue of a provider. */
  queueOf(provider: string): string;
}

/** Metadata by which a batch opts out. */
const OPT_OUT = { key: 'nightshift_delegate', value: 'never' } as const;

/**
 * How a model is delegated; null if it goes to its gateway, or to none
 * (docs/design/delegation.md#routing).
 */
export function planDelegate(
  { model, entries, hasGateway }: ModelToRoute,
  batch: BatchRow,
  { config, queueOf }: DelegationSettings,
): PlannedDelegate | null {
  const delegate = config.delegates[model];
  const provider = delegate === undefined ? undefined : config.providers[delegate.provider];
  if (delegate === undefined || provider === undefined) return null;
  if (!takesEndpoint(provider.type, batch.endpoint)) return null;
  if (isExcluded(batch, delegate.tenants)) return null;
  const { createdAtSec, expiresAtSec } = batch;
  const isSmall = entries < provider.min_lines;
  const isShort = (expiresAtSec - createdAtSec) * 1000 < delegate.min_window;
  if (hasGateway && (isSmall || isShort)) return null;
  const fallback = fallsBack(config, model);
  return {
    provider: delegate.provider,
    queue: queueOf(delegate.provider),
    giveUpAtMs: giveUpAtMs({
      createdAtMs: createdAtSec * 1000,
      expiresAtMs: expiresAtSec * 1000,
      hasFallback: fallback,
      fallbackBeforeMs: delegate.fallback_before,
      cancelLeadMs: delegate.cancel_lead,
    }),
    harvestGraceMs: config.batch.harvest_grace,
    fallback,
  };
}

function isExcluded({ tenant, metadata }: BatchRow, tenants: readonly string[]): boolean {
  if (metadata?.[OPT_OUT.key] === OPT_OUT.value) return true;
  return tenants.length > 0 && !tenants.includes(tenant);
}
