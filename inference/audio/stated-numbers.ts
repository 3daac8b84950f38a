/** Longer recordings do not exist, s. */
const MAX_SECONDS = 10_000_000;

/** A time that a worker states, in seconds. One that cannot be is 0: costs of requests are computed with it. */
export function secondsOf(stated: number): number {
  return stated >= 0 && stated <= MAX_SECONDS ? stated : 0;
}

/** A figure that a worker states. NaN and infinity, which JSON does not have, are 0. */
export function figureOf(stated: number): number {
  return Number.isFinite(stated) ? stated : 0;
}
