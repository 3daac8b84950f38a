/** One part of the scene. */
export interface Arm {
  readonly name: string;
  /** Whether users and batch go through the gateway. */
  readonly isControlled: boolean;
  readonly hasBatch: boolean;
}

/** The engines: two of these, whose answers take a second if all slots are in use. */
export const ENGINES = 2;
export const SLOTS = 32;
export const ENGINE_FLAGS: readonly string[] = [
  ...['--slots', String(SLOTS), '--step-base-ms', '30', '--step-growth-ms', '0.4'],
  ...['--prefill-ms-per-token', '0.02', '--cache-tokens', '0'],
  ...['--output-tokens', '20', '--output-sigma', '0.4'],
];

/** Requests in flight at which the engines cannot do more. */
export const KNEE = ENGINES * SLOTS;
/** As many as a worker should have: half in flight, half held. */
export const PERMITS = 2 * KNEE;

/** The parts of the scene, in their order. */
export const ARMS: readonly Arm[] = [
  { name: 'users alone', isControlled: true, hasBatch: false },
  { name: 'with a batch, sent straight', isControlled: false, hasBatch: true },
  { name: 'with a batch, through the gateway', isControlled: true, hasBatch: true },
];

const PHASE_MS = 5_000;
const BURST_LOAD = 0.88;
const VALLEY_LOAD = 0.3;

/** The load of users at a time of an arm, as a share of what the engines can answer: bursts and valleys. */
function userLoad(atMs: number): number {
  return Math.floor(atMs / PHASE_MS) % 2 === 0 ? VALLEY_LOAD : BURST_LOAD;
}

/**
 * When users send, ms from the begin of the arm: Poisson arrivals, the same in each arm. They do not depend on the
 * answers, so a slow server does not get fewer requests, and its long waits are all counted.
 */
export function arrivals(capacityPerSec: number, untilMs: number): number[] {
  const random = generator(1);
  const times: number[] = [];
  for (let atMs = 0; ;) {
    atMs += (-Math.log(random()) * 1_000) / (BURST_LOAD * capacityPerSec);
    if (atMs >= untilMs) return times;
    // Thinning (Lewis and Shedler, 1979): the highest rate, of which a part is kept.
    if (random() < userLoad(atMs) / BURST_LOAD) times.push(atMs);
  }
}

/** Lehmer's generator: uniform in (0, 1). */
function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
