import { nextNumber } from '../words';

/** How long answers are, before the limit of the request. */
export interface OutputLengths {
  /** Tokens of the median answer. */
  readonly median: number;
  /** Standard deviation of the logarithm; 0 gives every answer the median length. */
  readonly sigma: number;
  readonly seed: number;
}

const MAX_TOKENS = 1_000_000;

/**
 * Tokens of one answer, lognormally distributed over requests. The same request and seed always give the
 * same length.
 *
 * @param requestHash 32 bits that depend on the request
 */
export function outputLength(requestHash: number, { median, sigma, seed }: OutputLengths): number {
  if (sigma === 0) return median;
  const first = nextNumber(mixed(requestHash ^ mixed(seed)));
  const deviation = normal(uniform(first), uniform(nextNumber(mixed(first))));
  const tokens = Math.round(median * Math.exp(sigma * deviation));
  return Math.min(MAX_TOKENS, Math.max(1, tokens));
}

/** A standard normal deviate from two uniform numbers above 0 (Box and Muller, 1958). */
function normal(u: number, v: number): number {
  return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v);
}

/** From 32 bits to a number in (0, 1). */
function uniform(bits: number): number {
  return (bits + 0.5) / 2 ** 32;
}

/** The finalizer of MurmurHash3: neighbouring inputs give unrelated outputs. */
function mixed(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
