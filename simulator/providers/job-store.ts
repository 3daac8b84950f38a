import type { InputError } from '../../core/openai/input-errors';
import type { FileStore } from './file-store';
import {
  advanced,
  begun,
  cancelled,
  hasEnded,
  type JobCourse,
  type JobProgress,
} from './job-phases';
import type { ProviderSettings } from './settings';

/** Lines by their end, as the provider counts them. */
export interface JobOutcome {
  readonly outputFile: string | null;
  readonly errorFile: string | null;
  readonly completed: number;
  readonly failed: number;
  readonly usage: unknown;
}

/** What a job is made of. */
export interface JobInput extends JobCourse {
  readonly id: string;
  /** The provider's own members of the job. */
  readonly request: Readonly<Record<string, unknown>>;
  /** The value of our marker; null for a job of someone else. */
  readonly marker: string | null;
  /** Why the job fails; empty for a job that does not. */
  readonly errors: readonly InputError[];
  /** Estimated tokens of the input. */
  readonly tokens: number;
  /** Makes the result files when the job leaves its run. Null afterwards, so the input can be freed. */
  readonly run:
    ((answered: number, progress: JobProgress, settings: ProviderSettings) => JobOutcome) | null;
}

/** A job at a provider. */
export interface StoredJob extends JobInput {
  readonly createdMs: number;
  readonly progress: JobProgress;
  /** Null until results exist. */
  readonly outcome: JobOutcome | null;
}

/** The jobs of all simulated providers. A job is brought up to date when it is looked at. */
export class JobStore {
  readonly #jobs = new Map<string, StoredJob>();
  readonly #deleted = new Set<string>();
  readonly #ends: ProviderSettings['ends'] = [];
  #settings: ProviderSettings;
  #changedMs = 0;

  constructor(settings: ProviderSettings) {
    this.#settings = settings;
    this.#ends.push(...settings.ends);
  }

  /** What happened before the change is decided by the old settings. */
  configure(settings: ProviderSettings, nowMs: number): void {
    this.all(nowMs);
    if (settings.ends !== this.#settings.ends) this.#ends.splice(0, Infinity, ...settings.ends);
    this.#settings = settings;
    this.#changedMs = nowMs;
  }

  /** The end of the next job: the first of the list, and the last one for all jobs after it. */
  nextEnd(): JobCourse['end'] {
    const [end = 'completed'] = this.#ends;
    if (this.#ends.length > 1) this.#ends.shift();
    return end;
  }

  add(input: JobInput, nowMs: number): StoredJob {
    const job = { ...input, createdMs: nowMs, progress: begun(nowMs), outcome: null };
    this.#jobs.set(job.id, job);
    return this.#upToDate(job, nowMs);
  }

  get(id: string, nowMs: number): StoredJob | undefined {
    const job = this.#jobs.get(id);
    if (job === undefined || this.#deleted.has(id)) return undefined;
    return this.#upToDate(job, nowMs);
  }

  /** Newest first. */
  all(nowMs: number): readonly StoredJob[] {
    return this.created(nowMs).filter(({ id }) => !this.#deleted.has(id));
  }

  /** Also those that were deleted: they were paid for. Newest first. */
  created(nowMs: number): readonly StoredJob[] {
    return [...this.#jobs.values()].map((job) => this.#upToDate(job, nowMs)).reverse();
  }

  /** The job is shown no more, and still counts among {@link created}. */
  delete(id: string): void {
    this.#deleted.add(id);
  }

  /** Estimated tokens of the jobs that have not ended. */
  enqueuedTokens(nowMs: number): number {
    return this.all(nowMs)
      .filter(({ progress }) => !hasEnded(progress.phase))
      .reduce((sum, { tokens }) => sum + tokens, 0);
  }

  /** Forgets the job, so that its id may be used again. */
  remove(id: string): void {
    this.#jobs.delete(id);
  }

  cancel(job: StoredJob, nowMs: number): StoredJob {
    const progress = cancelled(job.progress, job, this.#settings, nowMs);
    return this.#upToDate({ ...job, progress }, nowMs);
  }

  #upToDate(job: StoredJob, nowMs: number): StoredJob {
    const clock = { nowMs, changedMs: this.#changedMs };
    const progress = advanced(job.progress, job, this.#settings, clock);
    const { phase, answered } = progress;
    const hasRun = phase === 'finalizing' || hasEnded(phase);
    const isRunDue = hasRun && phase !== 'failed';
    const run = isRunDue ? job.run : null;
    const outcome = job.outcome ?? run?.(answered, progress, this.#settings) ?? null;
    const current = { ...job, progress, outcome, run: hasRun ? null : job.run };
    this.#jobs.set(job.id, current);
    return current;
  }
}

/** What the simulated providers share. */
export interface ProviderState {
  readonly settings: ProviderSettings;
  readonly files: FileStore;
  readonly jobs: JobStore;
}
