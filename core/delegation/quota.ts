/** Bounds of one account at a provider; an absent field means no limit. */
export interface AccountLimits {
  readonly maxOpenJobs?: number | undefined;
  /** Most input tokens of open jobs. */
  readonly maxEnqueuedTokens?: number | undefined;
}

/** What a tenant has open at an account, and which of its jobs wait. */
export interface TenantDemand {
  readonly tenant: string;
  readonly openJobs: number;
  readonly openTokens: number;
  /** Oldest first; those that cannot be next may be left out. */
  readonly waiting: readonly WaitingJob[];
}

/** A job that waits for room. */
export interface WaitingJob {
  readonly id: string;
  readonly tokens: number;
}

/**
 * The waiting jobs for which the account has room, in the order in which they get it: each time the oldest one of
 * the tenant with the fewest open tokens (docs/design/provider-jobs.md#quota). A job that has its turn is never
 * overtaken by a smaller one, or it could wait forever. A job that exceeds the limit by itself runs while nothing
 * else is open. All of them are returned, because jobs ask at different times: each waits for its turn, but none for
 * another one to ask.
 */
export function nextToCreate(
  tenants: readonly TenantDemand[],
  { maxOpenJobs = Infinity, maxEnqueuedTokens = Infinity }: AccountLimits,
): readonly string[] {
  let demands = tenants;
  const next: string[] = [];
  for (let turn = firstInTurn(demands); turn !== null; turn = firstInTurn(demands)) {
    const openJobs = demands.reduce((sum, tenant) => sum + tenant.openJobs, 0);
    const openTokens = demands.reduce((sum, tenant) => sum + tenant.openTokens, 0);
    const hasRoom = openJobs < maxOpenJobs && openTokens + turn.job.tokens <= maxEnqueuedTokens;
    if (openJobs > 0 && !hasRoom) break;
    next.push(turn.job.id);
    demands = withOpened(demands, turn);
  }
  return next;
}

/** Input tokens of a job, estimated from its bytes. */
export function estimatedTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

/** A tenant, and its oldest waiting job. */
interface Turn {
  readonly tenant: TenantDemand;
  readonly job: WaitingJob;
}

function firstInTurn(tenants: readonly TenantDemand[]): Turn | null {
  const turns = tenants.flatMap((tenant) =>
    tenant.waiting.slice(0, 1).map((job) => ({ tenant, job })),
  );
  return turns.sort((a, b) => byPrecedence(a.tenant, b.tenant))[0] ?? null;
}

/** As if the job had been created. */
function withOpened(tenants: readonly TenantDemand[], { tenant, job }: Turn): TenantDemand[] {
  const { openJobs, openTokens, waiting } = tenant;
  const open = { openJobs: openJobs + 1, openTokens: openTokens + job.tokens };
  return tenants.map((one) =>
    one === tenant ? { ...one, ...open, waiting: waiting.slice(1) } : one,
  );
}

/** Ties are broken by name, so that all processes come to the same order. */
function byPrecedence(a: TenantDemand, b: TenantDemand): number {
  return a.openTokens - b.openTokens || (a.tenant < b.tenant ? -1 : 1);
}
