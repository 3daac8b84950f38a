/** One backend at the moment of a choice. */
export interface Candidate {
  readonly id: string;
  readonly isReady: boolean;
  /** Whether its limit admits the request now. */
  readonly hasRoom: boolean;
  readonly inFlight: number;
  readonly limit: number;
  /** Blocks of the prompt that it should have in its cache (core/dispatch/backends/prefix-index.ts). */
  readonly match: number;
}

/** What the choice depends on besides the candidates. */
export interface ChoiceOptions {
  /** `affinity.load_bound`: how far above the mean a backend with the prefix may be loaded. */
  readonly loadBound: number;
  /** Blocks of the prompt. */
  readonly promptBlocks: number;
  /** Requests with the same key prefer the same backend: a hash of the first block, or any number. */
  readonly key: number;
  /** Backends that this request was sent to in vain. Each one is tried once. */
  readonly tried?: ReadonlySet<string>;
}

/**
 * The default of `affinity.load_bound`. Lines of a batch come in bursts of one prefix, so a bound near 1 sends
 * many of them away from it; row F10 of docs/benchmarks.md compares bounds.
 */
export const LOAD_BOUND = 3;
/** From this part of a prompt on, a match is worth the whole load bound. */
const LONG_MATCH = 0.5;
/** What a shorter match may use of the part of the bound that is above the mean. */
const SHORT_MATCH_SHARE = 0.25;

/**
 * The backend to send a request to; null if none is ready and has room
 * (docs/design/flow-control.md#choice-of-a-backend).
 *
 * 1. The longest match, among backends whose load stays within the bound: consistent hashing with bounded
 *    loads (Mirrokni, Thorup and Zadimoghaddam, 2018), with a cache instead of a hash. The bound is lower if the
 *    match is less than half of the prompt.
 * 2. Otherwise the fewest requests in flight, among those below their limits; if all are above, the least overload.
 * 3. Ties: rendezvous hashing by `key`, so that requests that begin alike meet on one backend.
 */
export function chooseBackend<C extends Candidate>(
  candidates: readonly C[],
  { loadBound, promptBlocks, key, tried }: ChoiceOptions,
): C | null {
  const ready = candidates.filter(({ isReady }) => isReady);
  const open = ready.filter(({ id, hasRoom }) => hasRoom && tried?.has(id) !== true);
  const inFlight = ready.reduce((sum, candidate) => sum + candidate.inFlight, 0);
  // The mean counts the new request, so an idle pool keeps its affinity.
  const mean = (inFlight + 1) / Math.max(1, ready.length);
  const isWithinBound = (candidate: C): boolean =>
    candidate.inFlight < Math.ceil(mean * boundOf(candidate.match / promptBlocks, loadBound));
  const known = open.filter((candidate) => candidate.match > 0 && isWithinBound(candidate));
  const longest = Math.max(...known.map(({ match }) => match));
  const equal = known.length > 0 ? known.filter(({ match }) => match === longest) : open;
  return leastLoaded(equal, key);
}

/** How far above the mean a backend with this part of the prompt may be loaded. */
function boundOf(part: number, loadBound: number): number {
  return part >= LONG_MATCH ? loadBound : 1 + SHORT_MATCH_SHARE * (loadBound - 1);
}

/**
 * Limits that differ by less than this factor may be those of equal backends: learnt limits are estimates.
 */
const ALIKE = 1.4;

/**
 * Limits to compare backends by: of each the mean of those that are about as large. With its own limit, the one that is
 * estimated too high would get a queue in its engine while the other has free places, and would keep the other's limit
 * too low, because the other never gets more.
 */
export function comparedLimits(limits: readonly number[]): number[] {
  return limits.map((own) => {
    const alike = limits.filter((other) => other < own * ALIKE && own < other * ALIKE);
    return alike.reduce((sum, other) => sum + other, 0) / Math.max(1, alike.length);
  });
}

function leastLoaded<C extends Candidate>(candidates: readonly C[], key: number): C | null {
  let best: C | null = null;
  for (const candidate of candidates) {
    if (best === null || isBetter(candidate, best, key)) best = candidate;
  }
  return best;
}

function isBetter(a: Candidate, b: Candidate, key: number): boolean {
  const [one, other] = [overload(a), overload(b)];
  if (one !== other) return one < other;
  if (a.inFlight !== b.inFlight) return a.inFlight < b.inFlight;
  return rank(a.id, key) > rank(b.id, key);
}

/** How far a backend is above its limit; 0 for those that are below, whose limits say nothing about their speed. */
function overload({ inFlight, limit }: Candidate): number {
  return inFlight < limit ? 0 : inFlight / limit;
}

/** The rank of a backend for a key: as good as random, and the same in every process. */
function rank(id: string, key: number): number {
  let hash = key | 0;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
