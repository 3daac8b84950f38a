import { ApplicationFailure } from '@temporalio/activity';
import type {
  CollectedJob,
  CollectJobInput,
  DelegateActivities,
  DelegatedJob,
  JobInput,
  OpenedParts,
  OpenPartsInput,
  SettlePartInput,
  SubmittedJob,
  WatchedJob,
  WatchJobInput,
} from '../../activities/delegate/contract';
import type { PlannedDelegate } from '../../activities/delegate/planned-delegate';
import type { ExecuteChunkResult } from '../../activities/contract';
import { nextJobs, type KnownJob } from '../../core/delegation/next-jobs';
import { isSettled, type JobStep } from '../../core/delegation/job-steps';
import { BATCH_QUEUE } from '../../workflows/contract';
import type { FakeBatch } from './fake-batch';

/** How a provider treats the jobs of a {@link FakeDelegation}. */
export interface FakeDelegationOptions {
  readonly fallback?: boolean;
  readonly generations?: number;
  readonly maxLines?: number;
  readonly jobsPerPart?: number;
  /** No worker serves the provider, and its time is over after 2 s. */
  readonly isUnserved?: boolean;
  readonly windowMs?: number;
  /** Looks at a job before it has ended. */
  readonly looks?: number;
  /** Whether the provider leaves a line without an answer. */
  readonly isMissing?: (position: number, generation: number) => boolean;
  /** Where staging ends a part. */
  readonly stagedTo?: (input: JobInput) => number;
  readonly onSubmit?: (input: JobInput) => Promise<void>;
  readonly onWatch?: (input: WatchJobInput) => Promise<void>;
}

type Row = { -readonly [K in keyof KnownJob]: KnownJob[K] };

/** A provider in memory, with rows that follow the rules of the real ones. */
export class FakeDelegation {
  readonly #options: FakeDelegationOptions;
  readonly rows: Row[] = [];
  readonly submitted: JobInput[] = [];
  /** Calls of `submitJob`, also for jobs that are submitted already. */
  submits = 0;
  readonly watched: WatchJobInput[] = [];
  readonly collected: CollectJobInput[] = [];
  readonly settled: { from: number; to: number }[] = [];
  readonly #looks = new Map<string, number>();
  #isFinished = false;

  constructor(options: FakeDelegationOptions = {}) {
    this.#options = options;
  }

  /** Ends all jobs at their next look. */
  finish(): void {
    this.#isFinished = true;
  }

  /** The member of the plan's model. */
  get plan(): PlannedDelegate {
    const { isUnserved = false } = this.#options;
    return {
      provider: 'fake',
      queue: isUnserved ? 'nobody' : BATCH_QUEUE,
      giveUpAtMs: Date.now() + (isUnserved ? 2_000 : 3_600_000),
      harvestGraceMs: 1_000,
      fallback: this.#options.fallback ?? false,
    };
  }

  activities(batch: FakeBatch): DelegateActivities {
    return {
      openParts: (input) => Promise.resolve(this.#opened(input)),
      submitJob: (input) => this.#submit(input),
      watchJob: (input) => this.#watch(input),
      collectJob: (input) => Promise.resolve(this.#collect(input, batch)),
      settlePart: (input) => Promise.resolve(this.#settle(input, batch)),
    };
  }

  #opened(input: OpenPartsInput): OpenedParts {
    const { jobsPerPart } = this.#options;
    const jobs = this.#open(input);
    return jobsPerPart === undefined ? { jobs } : { jobs, jobsPerPart };
  }

  #open({ open, unanswered, giveUpAtMs, stopping, isOver }: OpenPartsInput): DelegatedJob[] {
    if (isOver === true) {
      for (const row of this.rows) if (!isSettled(row.step)) row.step = 'abandoned';
      return [];
    }
    const { generations = 2, maxLines = 1_000, windowMs = 3_600_000 } = this.#options;
    const { running, fresh } = nextJobs({
      jobs: this.rows,
      ...{ open, unanswered, giveUpAtMs, generations, windowMs },
      ...{ minLines: 1, nowMs: Date.now(), isStopping: stopping === true },
      limits: { maxLines, maxBytes: 1, totalBytes: 0 },
    });
    const made = fresh.map((job): Row => ({ ...job, ...NEW, id: idOf(job) }));
    this.rows.push(...made);
    return [...running, ...made].map(({ id: jobId, from, to, generation, ordinal }) => {
      return { jobId, from, to, generation, ordinal };
    });
  }

  async #submit(input: JobInput): Promise<SubmittedJob> {
    const { jobs, to } = input.job;
    for (const job of jobs ?? []) await this.#submit({ ...input, job });
    if (jobs !== undefined) return { kind: 'submitted', to, stopCause: null };
    const row = this.#row(input);
    this.submits++;
    const result = () => ({ kind: 'submitted' as const, to: row.to, stopCause: null });
    // A later run submits it again, which the row makes an end at once.
    if (row.step !== 'staging') return result();
    await this.#options.onSubmit?.(input);
    this.submitted.push(input);
    row.to = this.#options.stagedTo?.(input) ?? row.to;
    row.step = 'submitted';
    return result();
  }

  async #watch(input: WatchJobInput): Promise<WatchedJob> {
    for (const job of input.job.jobs?.slice(1) ?? []) this.#row({ ...input, job }).step = 'ended';
    const row = this.#row(input);
    this.watched.push(input);
    await this.#options.onWatch?.(input);
    const looks = (this.#looks.get(row.id) ?? 0) + 1;
    this.#looks.set(row.id, looks);
    const isEnding = input.stopping === true || this.#isFinished;
    if (!isEnding && looks < (this.#options.looks ?? 1)) throw notYet();
    row.step = 'ended';
    return { kind: 'ended' };
  }

  #collect(input: CollectJobInput, batch: FakeBatch): CollectedJob {
    const { jobs, from, to } = input.job;
    if (jobs !== undefined) {
      const ends = jobs.map((job) => this.#collect({ ...input, job }, batch));
      const next = ends.find(({ unanswered }) => unanswered > 0)?.next ?? to;
      const unanswered = ends.reduce((sum, end) => sum + end.unanswered, 0);
      return { next, completed: next - from, failed: 0, unanswered, stopCause: batch.stopCause };
    }
    const row = this.#row(input);
    this.collected.push(input);
    const { isMissing = () => false } = this.#options;
    const isLeft = (position: number) => isMissing(position, row.generation);
    const open = positionsOf(row).filter((at) => !batch.answered.has(keyOf(input.safe, at)));
    const left = open.filter(isLeft);
    for (const at of open) if (!isLeft(at)) batch.answer(asChunk(input), at, at + 1);
    row.step = 'collected';
    row.outcome = left.length > 0 ? 'partial_complete' : 'completed';
    const next = left[0] ?? row.to;
    const taken = input.taken ?? [row];
    const completed = taken.reduce((sum, { from: at, to: end }) => {
      return sum + Math.max(0, Math.min(end, next) - at);
    }, 0);
    return { next, completed, failed: 0, unanswered: left.length, stopCause: batch.stopCause };
  }

  #settle(input: SettlePartInput, batch: FakeBatch): ExecuteChunkResult {
    const { from, to } = input;
    this.settled.push({ from, to });
    for (const at of positionsOf(input)) {
      if (!batch.answered.has(keyOf(input.safe, at))) batch.answer(asChunk(input), at, at + 1);
    }
    const counts = { next: to, completed: 0, failed: to - from, answered: to - from };
    return { ...counts, ...SETTLED, stopCause: batch.stopCause };
  }

  #row({ job }: JobInput): Row {
    const row = this.rows.find(({ id }) => id === job.jobId);
    if (row === undefined) throw new Error(`there is no row of ${job.jobId}`);
    return row;
  }
}

const NEW = { step: 'staging' as JobStep, outcome: null, reason: null };
const SETTLED: Omit<
  ExecuteChunkResult,
  'next' | 'completed' | 'failed' | 'answered' | 'stopCause'
> = { worker: 'w1', ratePerSec: null, p95Ms: null, left: 'done' };

function idOf({
  from,
  generation,
  ordinal,
}: {
  from: number;
  generation: number;
  ordinal: number;
}) {
  return `job_${from}_${generation}_${ordinal}`;
}

function positionsOf({ from, to }: { from: number; to: number }): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function keyOf(safe: string, position: number): string {
  return `${safe}/${position}`;
}

/** `FakeBatch.answer` reads only the model's name. */
function asChunk(input: { safe: string }): never {
  return input as never;
}

function notYet(): ApplicationFailure {
  return ApplicationFailure.create({
    message: 'not yet',
    type: 'provider_wait',
    nextRetryDelay: 20,
    category: 'BENIGN',
  });
}
