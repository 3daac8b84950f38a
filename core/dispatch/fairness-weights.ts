/** The section `fairness` of the configuration; each weight is above 0 (docs/configuration.md#fairness). */
export interface Fairness {
  /** Weight of tenants that are not listed. */
  readonly default: number;
  readonly tenants: Readonly<Record<string, number>>;
  /** A model that is not listed has weight 1. */
  readonly models: Readonly<Record<string, number>>;
}

/** All weights are equal. */
export const EQUAL_WEIGHTS: Fairness = { default: 1, tenants: {}, models: {} };

/** The part of the service that a tenant gets, relative to other tenants that wait. */
export function tenantWeight(fairness: Fairness, tenant: string): number {
  return listed(fairness.tenants, tenant) ?? fairness.default;
}

/** The part that requests of a model get, relative to those of other models. */
export function modelWeight(fairness: Fairness, model: string): number {
  return listed(fairness.models, model) ?? 1;
}

/** The weight of the requests of one tenant for one model. */
export function flowWeight(fairness: Fairness, tenant: string, model: string): number {
  return tenantWeight(fairness, tenant) * modelWeight(fairness, model);
}

/** Clients choose both names, so `constructor` must not find what every object has. */
function listed(weights: Readonly<Record<string, number>>, name: string): number | undefined {
  return Object.hasOwn(weights, name) ? weights[name] : undefined;
}
