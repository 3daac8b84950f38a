/** Bounds of one account at a provider; an absent field means no limit. */
export interface AccountLimits {
  readonly maxOpenJobs?: number | undefined;
  /** Most input tokens of open jobs. */
  readonly maxEnqueuedTokens?: number | undefined;
}

/** What a tenant has open at an account, and which of its jobs waits longest. */
export interface TenantDemand {
  readonly tenant: string;
  readonly openJobs: number;
  readonly openTokens: number;
  /** The tenant's oldest waiting job; null if none waits. */
  readonly waiting: { readonly id: string; readonly tokens: number } | null;
}

/**
 * Whether the account has room for the job that is next, and which job that is: the oldest one of the
 * tenant with the fewest open tokens (docs/design/provider-jobs.md#quota). The job that is next is never
 * overtaken by a smaller one, or it could wait forever. A job that exceeds the limit by itself runs while
 * nothing else is open. Null if no job waits, or there is no room.
 */
export function nextToCreate(
  tenants: readonly TenantDemand[],
  limits: AccountLimits,
): string | null {
  const next = [...tenants].filter(isWaiting).sort(byPrecedence)[0]?.waiting;
  if (next === undefined) return null;
  const openJobs = tenants.reduce((sum, tenant) => sum + tenant.openJobs, 0);
  const openTokens = tenants.reduce((sum, tenant) => sum + tenant.openTokens, 0);
  if (openJobs === 0) return next.id;
  const { maxOpenJobs = Infinity, maxEnqueuedTokens = Infinity } = limits;
  const hasRoom = openJobs < maxOpenJobs && openTokens + next.tokens <= maxEnqueuedTokens;
  return hasRoom ? next.id : null;
}

/** Input tokens of a job, estimated from its bytes. */
export function estimatedTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

type WaitingTenant = TenantDemand & { readonly waiting: NonNullable<TenantDemand['waiting']> };

function isWaiting(tenant: TenantDemand): tenant is WaitingTenant {
  return tenant.waiting !== null;
}

/** Ties are broken by name, so that all processes come to the same order. */
function byPrecedence(a: WaitingTenant, b: WaitingTenant): number {
  return a.openTokens - b.openTokens || (a.tenant < b.tenant ? -1 : 1);
}
