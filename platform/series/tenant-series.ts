import type { Registry } from 'prom-client';
import { createLabelValues } from '../label-values';
import { readCounter, type Reading } from './read-series';

/** Limits on the series of tenants. */
export interface TenantSeriesLimits {
  readonly maxTenants?: number;
  readonly idleMs?: number;
  readonly nowMs?: () => number;
}

const MAX_TENANTS = 1_000;
const IDLE_MS = 3_600_000;

/**
 * Registers `worker_service_tokens_total` (docs/metrics.md#requests) and returns what counts the cost of a
 * request that has ended. Tenants beyond 1,000 share a series.
 */
export function createTenantSeries(
  registers: Registry[],
  { maxTenants = MAX_TENANTS, idleMs = IDLE_MS, nowMs }: TenantSeriesLimits,
): (tenant: string, tokens: number) => void {
  const tokensOf = new Map<string, number>();
  const labels = createLabelValues({
    ...{ max: maxTenants, idleMs, nowMs: nowMs ?? (() => performance.now()) },
    onGone: (tenant) => void tokensOf.delete(tenant),
  });
  const served = {
    name: 'worker_service_tokens_total',
    help: 'Cost of requests that have ended: input tokens and twice the output tokens',
    labelNames: ['tenant'],
  };
  readCounter(registers, served, () => {
    labels.sweep();
    return [...tokensOf].map(([tenant, tokens]): Reading => [{ tenant }, tokens]);
  });
  return (tenant, tokens) => {
    const label = labels.of(tenant);
    tokensOf.set(label, (tokensOf.get(label) ?? 0) + tokens);
  };
}
