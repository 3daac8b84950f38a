import { maxMinShares } from './max-min';

/** What one batch of a tenant claims of a limit, in one process. */
export interface LoanClaim {
  readonly tenant: string;
  readonly batch: string;
  /** Permits that it uses now. */
  readonly held: number;
  /** Whether requests of it wait: then it can use any number of permits. */
  readonly waits: boolean;
}

/** A process that shares a limit with others. */
export interface Borrower {
  readonly claims: readonly LoanClaim[];
  /** Permits that it can use, whatever it claims; `Infinity` without such a bound. */
  readonly most: number;
}

/**
 * How many of `limit` permits each process should have: tenants share by weight, the batches of a tenant equally, and
 * a batch divides its share equally among the processes that run it. Nobody gets more than it can use
 * (docs/design/permits.md#several-processes).
 *
 * @returns one share for each borrower, not rounded; at most `limit` in total
 */
export function loanShares(
  limit: number,
  borrowers: readonly Borrower[],
  weightOf: (tenant: string) => number,
): number[] {
  const shares = borrowers.map(() => 0);
  let open = borrowers.map((_, at) => at);
  let left = limit;
  for (;;) {
    const round = sharesOf(left, { borrowers, open, weightOf });
    const full = open.filter((at) => (round[at] ?? 0) > (borrowers[at]?.most ?? 0));
    for (const at of full.length === 0 ? open : full) {
      shares[at] = Math.min(round[at] ?? 0, borrowers[at]?.most ?? 0);
      left -= shares[at] ?? 0;
    }
    if (full.length === 0) return shares;
    open = open.filter((at) => !full.includes(at));
  }
}

interface Round {
  readonly borrowers: readonly Borrower[];
  /** The borrowers that take part, by their places. */
  readonly open: readonly number[];
  readonly weightOf: (tenant: string) => number;
}

/** The claims of one batch, with the places of their borrowers. */
type BatchClaims = { readonly at: number; readonly cap: number }[];

/** Shares `limit` among tenants, their batches, and the processes of each batch. */
function sharesOf(limit: number, { borrowers, open, weightOf }: Round): number[] {
  const shares = borrowers.map(() => 0);
  const tenants = [...claimsByTenant(borrowers, open)].map(([tenant, batches]) => ({
    batches: [...batches.values()],
    cap: sum([...batches.values()].flat()),
    weight: weightOf(tenant),
  }));
  maxMinShares(limit, tenants).forEach((ofTenant, t) => {
    const batches = tenants[t]?.batches ?? [];
    const portions = batches.map((claims) => ({ cap: sum(claims), weight: 1 }));
    maxMinShares(ofTenant, portions).forEach((ofBatch, b) => {
      const claims = batches[b] ?? [];
      const parts = maxMinShares(
        ofBatch,
        claims.map(({ cap }) => ({ cap, weight: 1 })),
      );
      claims.forEach(({ at }, i) => (shares[at] = (shares[at] ?? 0) + (parts[i] ?? 0)));
    });
  });
  return shares;
}

function claimsByTenant(borrowers: readonly Borrower[], open: readonly number[]) {
  const tenants = new Map<string, Map<string, BatchClaims>>();
  for (const at of open) {
    for (const { tenant, batch, held, waits } of borrowers[at]?.claims ?? []) {
      const batches = tenants.get(tenant) ?? new Map<string, BatchClaims>();
      tenants.set(tenant, batches);
      const claims = batches.get(batch) ?? [];
      batches.set(batch, claims);
      claims.push({ at, cap: waits ? Infinity : held });
    }
  }
  return tenants;
}

function sum(claims: BatchClaims): number {
  return claims.reduce((total, { cap }) => total + cap, 0);
}

/**
 * Rounds shares to whole permits without losing any: those with the largest rests get one more. A credit is what
 * earlier rounds owe; it is added to the rest, so that over time everybody gets its share.
 */
export function wholeShares(shares: readonly number[], credits: readonly number[]): number[] {
  const whole = shares.map(Math.floor);
  const rests = shares.map((share, at) => ({
    at,
    hasRest: share > (whole[at] ?? 0),
    rest: share - (whole[at] ?? 0) + (credits[at] ?? 0),
  }));
  const total = shares.reduce((all, share) => all + share, 0);
  // Sums of fractions are a little off.
  let left = Math.floor(total + 1e-6) - whole.reduce((all, share) => all + share, 0);
  for (const { at } of rests.filter((one) => one.hasRest).sort((a, b) => b.rest - a.rest)) {
    if (left <= 0) break;
    whole[at] = (whole[at] ?? 0) + 1;
    left--;
  }
  return whole;
}
