/** A part of what is shared: it wants up to `cap`, and counts by its weight. */
export interface Portion {
  /** What it can use; `Infinity` for any amount. */
  readonly cap: number;
  /** Above 0. */
  readonly weight: number;
}

/**
 * Shares `amount` by weight, and gives nobody more than its cap: what one cannot use, the others share
 * (weighted max-min fairness; Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
 *
 * @returns one share for each portion, in their order; their sum is `amount`, or less if the caps are used up
 */
export function maxMinShares(amount: number, portions: readonly Portion[]): number[] {
  const shares = portions.map(() => 0);
  const order = portions
    .map(({ cap, weight }, at) => ({ at, cap, weight }))
    .sort((a, b) => a.cap / a.weight - b.cap / b.weight);
  let left = Math.max(0, amount);
  let weights = order.reduce((sum, { weight }) => sum + weight, 0);
  for (const { at, cap, weight } of order) {
    const share = Math.min(cap, (left * weight) / weights);
    shares[at] = share;
    left -= share;
    weights -= weight;
  }
  return shares;
}
