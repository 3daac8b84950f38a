/** How long after its last chance a job is given up that nobody has ended, ms. */
export const AFTER_HARVEST_MS = 60_000;
const ALL_DONE_MS = 5_000;
const JITTER = 0.1;
const CAPACITY_INITIAL_MS = 60_000;
const CAPACITY_MAX_MS = 600_000;

/** What the time until the next status call depends on. Times in milliseconds. */
export interface PollInput {
  /** Since the provider accepted the job. */
  readonly ageMs: number;
  readonly initialMs: number;
  readonly maxMs: number;
  /** The shortest interval that the provider allows. */
  readonly minMs?: number;
  /** From the provider's last answer. */
  readonly retryAfterMs?: number;
  /** According to the counts every line is done, but the job has not ended yet. */
  readonly allDone: boolean;
  /** In [0, 1). */
  readonly random: number;
}

/**
 * The time until the next status call, ms: a tenth of the job's age within bounds, ± 10 %. So the end of a
 * job is noticed late by at most about a tenth of its age (docs/design/provider-jobs.md#polling).
 */
export function pollDelayMs(input: PollInput): number {
  const { ageMs, initialMs, maxMs, minMs = 0, retryAfterMs = 0, allDone, random } = input;
  const base = allDone ? ALL_DONE_MS : clamp(ageMs / 10, initialMs, Math.max(initialMs, maxMs));
  return Math.round(Math.max(jittered(base, random), minMs, retryAfterMs));
}

/**
 * The time until the next status call of a job that was asked to cancel `sinceMs` ago, ms: a fifth of that time,
 * between 1 s and 30 s. Most cancels take seconds, and somebody waits for the batch.
 */
export function harvestDelayMs(sinceMs: number): number {
  return Math.round(clamp(sinceMs / 5, 1_000, 30_000));
}

/**
 * The pause after a provider had no capacity, ms: what it asked for, else 60 s, doubling to 10 min.
 *
 * @param refusals how often in a row, from 1
 */
export function capacityDelayMs(refusals: number, retryAfterMs: number | null): number {
  if (retryAfterMs !== null) return Math.max(1_000, retryAfterMs);
  return Math.min(CAPACITY_MAX_MS, CAPACITY_INITIAL_MS * 2 ** Math.max(0, refusals - 1));
}

/** `ms` ± 10 %; `random` in [0, 1). */
function jittered(ms: number, random: number): number {
  return ms * (1 - JITTER + 2 * JITTER * random);
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
