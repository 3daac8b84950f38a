import type { FastifyRequest } from 'fastify';
import { PRIORITY, type Priority } from '../../core/chunks/priority';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import { headerValues } from '../../http/headers/header-values';
import type { FlowConfig } from '../../platform/config-gateway';
import { BAND_BY_NAME } from '../pools/settings';

/** The settings that decide the band of a request. */
export interface BandRules {
  readonly gateway: Pick<FlowConfig, 'default_band' | 'objectives' | 'tenants'>;
  /** Whether anyone may use the gateway, so that no tenant is restricted unless it is listed. */
  readonly isOpen: boolean;
}

/** Who sends a request, and how it is classified. */
export interface Classified {
  readonly isWorker: boolean;
  readonly tenant: string;
  readonly serviceTier: string | null;
}

/**
 * The band of a request (docs/design/flow-control.md#bands). Workers send lines of batches. Others may choose with
 * `x-gateway-inference-objective` or else with `service_tier`, but never a higher band than their tenant's.
 */
export function bandOf(request: FastifyRequest, who: Classified, rules: BandRules): Band {
  if (who.isWorker) return BAND.sheddable;
  const { default_band: fallback, tenants } = rules.gateway;
  const wanted = wantedBand(request, who.serviceTier, rules) ?? fallback;
  const listed = Object.hasOwn(tenants, who.tenant) ? tenants[who.tenant]?.max_band : undefined;
  const most = listed ?? (rules.isOpen ? 'critical' : 'standard');
  return BAND_BY_NAME[wanted] < BAND_BY_NAME[most] ? BAND_BY_NAME[most] : BAND_BY_NAME[wanted];
}

function wantedBand(request: FastifyRequest, tier: string | null, { gateway }: BandRules) {
  const [objective] = headerValues(request, 'x-gateway-inference-objective');
  if (objective !== undefined) {
    return Object.hasOwn(gateway.objectives, objective) ? gateway.objectives[objective] : undefined;
  }
  if (tier === 'priority') return 'critical';
  return tier === 'flex' ? 'sheddable' : undefined;
}

/** The priority of a batch line; `normal` for other requests. */
export function priorityOf(request: FastifyRequest, isWorker: boolean): Priority {
  const [given] = isWorker ? headerValues(request, 'x-nightshift-priority') : [];
  return Object.values(PRIORITY).find((priority) => String(priority) === given) ?? PRIORITY.normal;
}

/** The group of batch lines with the same prefix; null if the request names none. */
export function prefixOf(request: FastifyRequest, isWorker: boolean): number | null {
  const [given = ''] = isWorker ? headerValues(request, 'x-nightshift-prefix') : [];
  return /^[0-9a-f]{8}$/.test(given) ? Number.parseInt(given, 16) : null;
}

/** How long the client waits for the first byte, ms; infinity if it does not say. */
export function waitLimitMs(request: FastifyRequest): number {
  const [given = ''] = headerValues(request, 'x-slo-ttft-ms');
  return /^\d{1,15}$/.test(given) ? Number(given) : Infinity;
}
