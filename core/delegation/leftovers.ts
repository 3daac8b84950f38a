import type { JobOutcome, JobStep } from './job-steps';

/** Settings and state that decide about lines without an answer. Times are milliseconds since the epoch. */
export interface LeftoverInput {
  /** Lines of the model that lack an answer. */
  readonly lines: number;
  /** Rounds of jobs that were submitted so far. */
  readonly generationsUsed: number;
  /** Most rounds. */
  readonly generations: number;
  /** Fewest lines that the provider takes as one job. */
  readonly minLines: number;
  /** The provider refused these lines in a way that another round would not change. */
  readonly isRefusedForGood: boolean;
  readonly hasFallback: boolean;
  readonly nowMs: number;
  readonly giveUpAtMs: number;
  /** Length of the batch's completion window. */
  readonly windowMs: number;
}

/** What happens with leftovers: submitted again, sent to the model's gateway, or ended with an error. */
export type LeftoverPlan = 'none' | 'generation' | 'fallback' | 'errors';

/** A new round starts only if a tenth of the window is left for it. */
const LEAST_SHARE = 0.1;

/**
 * Decides about the leftovers of all parts of a model together, after their jobs have ended. Lines of a
 * stopped batch are none: its end names them (docs/design/provider-jobs.md#leftovers).
 */
export function leftoverPlan(input: LeftoverInput): LeftoverPlan {
  if (input.lines === 0) return 'none';
  if (mayRunAgain(input)) return 'generation';
  return input.hasFallback ? 'fallback' : 'errors';
}

function mayRunAgain(input: LeftoverInput): boolean {
  const leftMs = input.giveUpAtMs - input.nowMs;
  return (
    !input.isRefusedForGood &&
    input.generationsUsed < input.generations &&
    input.lines >= input.minLines &&
    leftMs >= input.windowMs * LEAST_SHARE
  );
}

/** When a batch stops waiting for providers, ms since the epoch. */
export function giveUpAtMs(batch: {
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly hasFallback: boolean;
  /** Time that the gateway needs for leftovers, ms. */
  readonly fallbackBeforeMs: number;
  /** Time that a cancel at the provider needs, ms; counts without a fallback. */
  readonly cancelLeadMs: number;
}): number {
  const windowMs = batch.expiresAtMs - batch.createdAtMs;
  const lead = batch.hasFallback
    ? Math.min(batch.fallbackBeforeMs, windowMs / 3)
    : Math.min(batch.cancelLeadMs, windowMs / 10);
  return batch.expiresAtMs - Math.floor(lead);
}

/** Error codes of lines that a provider did not answer. */
export type LeftoverCode = 'provider_failed' | 'provider_expired' | 'provider_missing_result';

/**
 * The error code of a line that its job did not answer.
 *
 * @param job where the job stands; `outcome` is null if it never ended at the provider
 * @param timeWasOver the job was cancelled because `giveUpAt` or the job's own timeout had passed
 */
export function leftoverCode(
  job: { readonly step: JobStep; readonly outcome: JobOutcome | null },
  timeWasOver: boolean,
): LeftoverCode {
  if (job.outcome === 'expired' || timeWasOver) return 'provider_expired';
  const isFinished = job.outcome === 'completed' || job.outcome === 'partial_complete';
  if (isFinished && job.step !== 'abandoned') return 'provider_missing_result';
  return 'provider_failed';
}
