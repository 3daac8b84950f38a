import type { Range } from '../range';
import { cutIntoParts, type PartLimits } from './cut';
import type { JobReason } from './job-reason';
import { isSettled, type JobOutcome, type JobStep } from './job-steps';
import { leftoverPlan, type LeftoverInput } from './leftovers';

/** The fields of a job's row that decide what runs next. */
export interface KnownJob extends Range {
  readonly id: string;
  readonly generation: number;
  readonly ordinal: number;
  readonly step: JobStep;
  readonly outcome: JobOutcome | null;
  /** Why it is refused or failed, if that decides what follows. */
  readonly reason: JobReason | null;
}

/** A job to be made. */
export interface JobToMake extends Range {
  readonly generation: number;
  readonly ordinal: number;
}

/** What is known when a model asks for its next jobs. Times are milliseconds since the epoch. */
export interface NextJobsInput extends Pick<
  LeftoverInput,
  'generations' | 'minLines' | 'nowMs' | 'giveUpAtMs' | 'windowMs'
> {
  /** All jobs of the model. */
  readonly jobs: readonly KnownJob[];
  /** Plan positions that may lack an answer, in order. Positions of jobs that run are not among them. */
  readonly open: readonly Range[];
  /** Lines without an answer in `open`; null if unknown. */
  readonly unanswered: number | null;
  /** `totalBytes` for all of `open`. */
  readonly limits: PartLimits;
  /** The batch stops: nothing begins. */
  readonly isStopping: boolean;
}

/** Jobs of the model to run now. Without any, its provider does no more for it. */
export interface NextJobs {
  /** They have rows already. */
  readonly running: readonly KnownJob[];
  readonly fresh: readonly JobToMake[];
}

/** How often the rest of a job is submitted again because the provider refused single lines. */
const MAX_ORDINALS_FOR_LINES = 3;

/**
 * Decides which jobs of a model run now (docs/design/delegation.md#generations): those that have begun; else
 * jobs over positions that no job has covered yet; else the same lines again, if the provider asked for that;
 * else the next generation, over all that is left. While a job runs, no other job covers any of its positions.
 */
export function nextJobs(input: NextJobsInput): NextJobs {
  const running = input.jobs.filter(({ step }) => !isSettled(step));
  if (input.isStopping || input.nowMs >= input.giveUpAtMs) return { running, fresh: [] };
  const untouched = subtract(input.open, input.jobs);
  if (untouched.length > 0) return { running, fresh: firstJobs(untouched, input) };
  if (running.length > 0) return { running, fresh: [] };
  const again = jobsAgain(input);
  return { running, fresh: again.length > 0 ? again : nextGeneration(input) };
}

/** Jobs over positions without one. They are cut range by range, since others may lie between two ranges. */
function firstJobs(untouched: readonly Range[], { jobs, limits }: NextJobsInput): JobToMake[] {
  const parts =
    jobs.length === 0
      ? cutIntoParts(untouched, limits)
      : untouched.flatMap((range) => cutIntoParts([range], limits));
  return parts.map(({ from, to }) => ({ from, to, generation: 0, ordinal: 0 }));
}

/** The last job of each part again, if the provider asked for that. */
function jobsAgain({ jobs, open }: NextJobsInput): JobToMake[] {
  const last = lastGeneration(jobs);
  return jobs
    .filter((job) => job.generation === last && mayRepeat(job))
    .filter((job) => !jobs.some((other) => isLater(other, job)))
    .filter((job) => open.some((range) => overlap(range, job)))
    .map(({ from, to, generation, ordinal }) => ({ from, to, generation, ordinal: ordinal + 1 }));
}

function mayRepeat({ reason, ordinal }: KnownJob): boolean {
  if (reason === 'quota') return true;
  return reason === 'lines_refused' && ordinal < MAX_ORDINALS_FOR_LINES;
}

function isLater(other: KnownJob, job: KnownJob): boolean {
  return (
    other.from === job.from && other.generation === job.generation && other.ordinal > job.ordinal
  );
}

function nextGeneration(input: NextJobsInput): JobToMake[] {
  const { jobs, open, limits, unanswered } = input;
  const last = lastGeneration(jobs);
  const positions = open.reduce((sum, { from, to }) => sum + to - from, 0);
  const plan = leftoverPlan({
    ...input,
    lines: unanswered ?? positions,
    generationsUsed: last + 1,
    isRefusedForGood: jobs.every(({ generation, step }) => generation < last || step === 'refused'),
    hasFallback: false,
  });
  if (plan !== 'generation') return [];
  const fitsOne = unanswered !== null && unanswered <= limits.maxLines;
  // The bytes of a few lines are unknown; staging ends a part early.
  const cut = fitsOne ? { ...limits, maxLines: positions, totalBytes: 0 } : limits;
  return cutIntoParts(open, cut).map(({ from, to }) => ({
    ...{ from, to },
    generation: last + 1,
    ordinal: 0,
  }));
}

function lastGeneration(jobs: readonly KnownJob[]): number {
  return jobs.reduce((last, { generation }) => Math.max(last, generation), 0);
}

function overlap(a: Range, b: Range): boolean {
  return a.from < b.to && b.from < a.to;
}

/** The parts of `ranges` that lie in none of `taken`. */
function subtract(ranges: readonly Range[], taken: readonly Range[]): Range[] {
  return taken.reduce<Range[]>(
    (rest, { from, to }) =>
      rest.flatMap((range) =>
        [
          { from: range.from, to: Math.min(range.to, Math.max(from, range.from)) },
          { from: Math.max(range.from, Math.min(to, range.to)), to: range.to },
        ].filter((one) => one.from < one.to),
      ),
    [...ranges],
  );
}
