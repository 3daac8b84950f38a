import type { ModelLimit } from '../../inference/dispatcher';

/** What requests of `model` wait for, for operators; null if they do not wait. */
export function permitWait(
  model: string,
  { limit, max, pausedMs }: ModelLimit,
  isWaiting: boolean,
): string | null {
  if (pausedMs > 0) {
    const seconds = Math.ceil(pausedMs / 1_000);
    return `model ${model}: its server asked for a pause, ${seconds} s are left (Retry-After)`;
  }
  if (!isWaiting) return null;
  return limit < max
    ? `a permit of model ${model}: its server is overloaded, ${limit} of ${max} requests at once`
    : `a permit of model ${model}: ${max} requests at once are allowed, or the limit of all models`;
}
