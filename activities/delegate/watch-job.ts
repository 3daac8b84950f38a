import { Context } from '@temporalio/activity';
import { harvestDelayMs, pollDelayMs } from '../../core/delegation/intervals';
import { isSettled, type JobOutcome } from '../../core/delegation/job-steps';
import { quietMs } from '../../core/delegation/create-lease';
import type { CallOptions, JobStatus } from '../../providers/provider';
import type { JobObservation } from '../../storage/postgres/provider-jobs/job-progress';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { Heartbeat } from '../runtime/heartbeat';
import { withHeartbeat } from '../runtime/with-heartbeat';
import { adoptCandidate, proofPauseMs, proverOf } from './await-proof';
import type { WatchedJob, WatchJobInput } from './contract';
import type { DelegateDeps } from './deps';
import { delayOf, eachJob, jobsOf, throwWaits } from './each-job';
import { END_OUTCOMES } from './end-outcomes';
import type { JobAttempt } from './job-attempt';
import type { FailedResult } from './job-attempt';
import { attemptAt, jobToFind, observedCall, reportFailure, rowOf } from './job-attempt';
import { JobNotes } from './job-notes';
import type { ProviderCall } from './observer';
import { proveCandidates, unprovenOf } from './prove-candidates';
import { GONE_MS, GONE_POLL_MS } from './gone';
import { isWait, notBeyond, retryLater } from './retry-later';

const RESULTS_POLL_MS = 5_000;
const OTHER_ACCOUNT_MS = 300_000;

/**
 * The activity that waits for the end of a job: one status call per attempt. "Not yet" is a failure that the
 * server retries, so days of waiting add no events to the history. When the job is late, or the batch stops, it
 * is cancelled at the provider, and its end is awaited for the grace of a harvest
 * (docs/design/delegation.md#watching).
 */
export function createWatchJob(deps: DelegateDeps): (input: WatchJobInput) => Promise<WatchedJob> {
  return async (input) => {
    const { stopping = false } = input;
    const notes = new JobNotes<WatchNote>(input);
    const watch = async ({ signal }: Heartbeat): Promise<WatchedJob> => {
      const isOneOfMany = input.job.jobs !== undefined;
      const ends = await eachJob(jobsOf(input), (one) =>
        lookAt({ ...one, stopping }, deps, { note: notes.of(one), isOneOfMany, signal }),
      );
      throwWaits(ends);
      return { kind: ends.values.some(({ kind }) => kind === 'ended') ? 'ended' : 'abandoned' };
    };
    return withHeartbeat(watch, { details: () => notes.details, beatsOnFailure: true });
  };
}

/** What a look at a job needs. */
export interface LookContext {
  readonly note: WatchNote;
  /** The jobs of a part are due at different times: an attempt looks only at those that are. */
  readonly isOneOfMany: boolean;
  readonly signal: AbortSignal;
}

/** One look at a job. @throws a failure that is retried when the next one is due */
export async function lookAt(
  input: WatchJobInput,
  deps: DelegateDeps,
  { note, isOneOfMany, signal }: LookContext,
): Promise<WatchedJob> {
  const dueInMs = isOneOfMany ? (note.lookAtMs ?? 0) - Date.now() : 0;
  if (dueInMs > 0) throw retryLater(`${input.provider}: the job runs`, dueInMs);
  const attempt = await attemptAt(input, deps);
  try {
    return await new Watch(attempt, { input, note, signal }).look(await rowOf(attempt));
  } catch (error) {
    if (isOneOfMany && isWait(error)) note.lookAtMs = Date.now() + delayOf(error);
    throw error;
  }
}

/** What an attempt passes on to the next one, in its heartbeat. Times are Unix ms. */
export interface WatchNote {
  /** When the next look is due, in a part of several jobs. */
  lookAtMs?: number;
  /** Since when the provider does not know the job. */
  goneSinceMs?: number;
  /** Since when the job has ended, while its results are not there yet. */
  endedSinceMs?: number;
  /** The provider's ids of candidates that are another job. */
  refuted?: readonly string[];
}

class Watch {
  readonly #attempt: JobAttempt;
  readonly #input: WatchJobInput;
  readonly #note: WatchNote;
  readonly #signal: AbortSignal;

  constructor(
    attempt: JobAttempt,
    { input, note, signal }: { input: WatchJobInput; note: WatchNote; signal: AbortSignal },
  ) {
    this.#attempt = attempt;
    this.#input = input;
    this.#note = note;
    this.#signal = signal;
  }

  async look(row: JobRow): Promise<WatchedJob> {
    if (row.step === 'abandoned') return { kind: 'abandoned' };
    if (isSettled(row.step) || row.step === 'ended') return { kind: 'ended' };
    if (Date.now() >= this.#endBy(row)) return this.#abandon(row);
    const { api, account, name } = this.#attempt.provider;
    // Another account does not know the job, and would make it look as if it were gone.
    if (row.account !== account) {
      throw this.#later(row, `${name} leads to another account than the job's`, OTHER_ACCOUNT_MS);
    }
    const { externalId } = row;
    if (externalId === null) return this.#withoutId(row);
    const ask = (options: CallOptions) => api.status(externalId, options);
    const result = await observedCall(this.#attempt, 'status', ask, this.#signal);
    if (result.outcome === 'ok') return this.#judge(row, result.value);
    await this.#attempt.deps.jobs.recordPollFailure(row.id);
    if (result.outcome === 'gone') return this.#gone(row);
    throw this.#failed(row, 'status', result);
  }

  #failed(row: JobRow, what: ProviderCall, result: FailedResult): Error {
    const { message, pauseMs } = reportFailure(this.#attempt, what, result);
    return this.#later(row, message, this.#isEnding(row) ? this.#harvestPause(row) : pauseMs);
  }

  async #judge(row: JobRow, status: JobStatus): Promise<WatchedJob> {
    const { deps, provider } = this.#attempt;
    delete this.#note.goneSinceMs;
    if (!status.isKnownState) {
      const log = { jobId: row.id, provider: provider.name, state: status.providerState };
      deps.logger.warn(log, 'a provider has a job state that is not known; it counts as running');
    }
    const outcome = END_OUTCOMES[status.state];
    if (outcome !== undefined) return this.#ended(row, status, this.#ownOutcome(row, outcome));
    await deps.jobs.recordObservation(row.id, observed(status));
    const text = progressText(provider.name, status);
    if (!this.#isEnding(row)) throw this.#later(row, text, this.#pollPause(row, status));
    await this.#cancel(row, status);
    throw this.#later(row, `${text}, cancelled`, this.#harvestPause(row));
  }

  async #ended(row: JobRow, status: JobStatus, outcome: JobOutcome): Promise<WatchedJob> {
    const { deps, provider } = this.#attempt;
    const { jobs } = deps;
    this.#note.endedSinceMs ??= Date.now();
    const waitedMs = Date.now() - this.#note.endedSinceMs;
    if (!status.hasAllResults && waitedMs < provider.api.capabilities.resultsLagMs) {
      await jobs.recordObservation(row.id, observed(status));
      const text = `${progressText(provider.name, status)}, its results are not there yet`;
      throw this.#later(row, text, RESULTS_POLL_MS);
    }
    const { error, lineErrors, isQuotaRefusal } = status;
    const message = error?.message ?? status.providerState;
    const code = error?.code ?? null;
    if (isQuotaRefusal) await jobs.refuse(row.id, { code, message, reason: 'quota' });
    else {
      const why =
        lineErrors.length > 0 ? { code, message, reason: 'lines_refused' as const } : error;
      await jobs.recordEnd(row.id, { ...observed(status), outcome, error: why });
    }
    const tookMs = Date.now() - (row.submittedAtMs ?? row.createdAtMs);
    deps.observer.jobEnded({ provider: provider.name, status: outcome, tookMs });
    return { kind: 'ended' };
  }

  /** Asks the provider to cancel. That it cannot, or has the end already, shows in the next look. */
  async #cancel({ externalId, id }: JobRow, { state }: JobStatus): Promise<void> {
    if (state === 'cancelling' || externalId === null) return;
    const { api } = this.#attempt.provider;
    const ask = (options: CallOptions) => api.cancel(externalId, options);
    const result = await observedCall(this.#attempt, 'cancel', ask, this.#signal);
    const log = { jobId: id, externalId, outcome: result.outcome };
    this.#attempt.deps.logger.info(log, 'cancel of a job requested');
  }

  /** A provider that loses a job for a moment must not cost its answers. */
  async #gone(row: JobRow): Promise<WatchedJob> {
    const { deps, provider } = this.#attempt;
    this.#note.goneSinceMs ??= Date.now();
    const message = `${provider.name} does not know the job ${row.externalId ?? ''}`;
    if (Date.now() - this.#note.goneSinceMs < GONE_MS)
      throw this.#later(row, message, GONE_POLL_MS);
    deps.logger.error({ jobId: row.id, externalId: row.externalId }, 'a job is gone');
    const end = { providerStatus: 'gone', outcome: 'failed' as const };
    await deps.jobs.recordEnd(row.id, { ...end, error: { code: null, message, reason: 'gone' } });
    return { kind: 'ended' };
  }

  /**
   * The job was to be created, and whether it was is unknown. It is looked up until a late request can no longer
   * take effect; a job that is not there then is given up. A job that is watched before a stop was submitted,
   * whatever its row says: PostgreSQL may have been restored.
   */
  async #withoutId(row: JobRow): Promise<WatchedJob> {
    const { deps, provider } = this.#attempt;
    if (row.firstCreateAtMs === null && this.#input.stopping === true) return this.#abandon(row);
    const quietAtMs = (row.creatingUntilMs ?? 0) + quietMs(provider.settleMs);
    const job = await jobToFind(this.#attempt, row);
    const look = (options: CallOptions) => provider.api.find(job, options);
    const result = await observedCall(this.#attempt, 'find', look, this.#signal);
    if (result.outcome !== 'ok') throw this.#failed(row, 'find', result);
    const found = result.value;
    if (found.kind === 'job') {
      const { externalId } = found.job;
      await deps.jobs.recordCreated(row.id, { externalId, adopted: true });
      deps.observer.adopted(provider.name);
      throw this.#later(row, 'the job was found', 1);
    }
    if (found.kind === 'candidates') await this.#prove(row, found.externalIds);
    if (Date.now() >= quietAtMs) return this.#abandon(row);
    throw this.#later(row, 'it is not certain that the job was created', this.#harvestPause(row));
  }

  /**
   * Returns if none of the candidates is the job. Otherwise it goes on until one of them is proven, or the time is
   * over: a candidate that may be somebody else's job is never cancelled.
   */
  async #prove(row: JobRow, externalIds: readonly string[]): Promise<void> {
    const { deps, provider } = this.#attempt;
    const candidates = await unprovenOf(row, externalIds, deps.jobs);
    const refuted = this.#note.refuted ?? [];
    const rest = candidates.filter((id) => !refuted.includes(id));
    const proof = await proveCandidates(row, rest, proverOf(this.#attempt, this.#signal));
    if (proof.proven !== null) {
      await adoptCandidate(this.#attempt, row, proof.proven);
      throw this.#later(row, 'the job was found', 1);
    }
    this.#note.refuted = [...refuted, ...proof.refuted];
    if (proof.open.length === 0) return;
    const pauseMs = this.#isEnding(row) ? this.#harvestPause(row) : proofPauseMs(row, provider);
    const message = `${proof.open.length} jobs at the provider may be this one, and only their results can tell`;
    throw this.#later(row, message, pauseMs);
  }

  async #abandon(row: JobRow): Promise<WatchedJob> {
    const { deps, provider } = this.#attempt;
    await deps.jobs.abandon(row.id);
    const { model, lines } = row;
    deps.observer.abandoned({ provider: provider.name, model, lines: lines ?? 0 });
    const log = { jobId: row.id, externalId: row.externalId, provider: provider.name };
    deps.logger.warn(log, 'job given up: its late answers are not delivered');
    return { kind: 'abandoned' };
  }

  /** When the batch no longer waits for the job: a grace after the stop, or after the job was late. */
  #endBy(row: JobRow): number {
    const { harvestGraceMs, stopping } = this.#input;
    const { scheduledTimestampMs } = Context.current().info;
    return (stopping === true ? scheduledTimestampMs : this.#lateAt(row)) + harvestGraceMs;
  }

  #lateAt(row: JobRow): number {
    return Math.min(this.#input.giveUpAtMs, this.#timeoutAt(row));
  }

  #timeoutAt({ submittedAtMs, createdAtMs }: JobRow): number {
    return (submittedAtMs ?? createdAtMs) + this.#attempt.provider.config.job_timeout;
  }

  /** A job that was cancelled after `job_timeout` has expired: only here is that time known. */
  #ownOutcome(row: JobRow, outcome: JobOutcome): JobOutcome {
    return outcome === 'cancelled' && Date.now() >= this.#timeoutAt(row) ? 'expired' : outcome;
  }

  #isEnding(row: JobRow): boolean {
    return this.#input.stopping === true || Date.now() >= this.#lateAt(row);
  }

  #harvestPause(row: JobRow): number {
    return harvestDelayMs(Date.now() - (this.#endBy(row) - this.#input.harvestGraceMs));
  }

  #pollPause({ submittedAtMs, createdAtMs }: JobRow, { counts }: JobStatus): number {
    const { config, api } = this.#attempt.provider;
    return pollDelayMs({
      ageMs: Date.now() - (submittedAtMs ?? createdAtMs),
      initialMs: config.poll_initial,
      maxMs: config.poll_max,
      minMs: api.capabilities.minPollMs,
      allDone:
        counts !== null && counts.total > 0 && counts.completed + counts.failed >= counts.total,
      random: Math.random(),
    });
  }

  /** The next look comes after the pause, but in time for a cancel and for giving the job up. */
  #later(row: JobRow, message: string, pauseMs: number): Error {
    const nowMs = Date.now();
    const untilLate = notBeyond(pauseMs, this.#lateAt(row), nowMs);
    return retryLater(message, notBeyond(untilLate, this.#endBy(row), nowMs));
  }
}

function observed({ providerState, counts, usage }: JobStatus): JobObservation {
  return {
    providerStatus: providerState,
    ...(counts === null ? {} : { counts }),
    ...(usage === null ? {} : { usage }),
  };
}

/** What the Temporal UI shows while the job runs. */
function progressText(provider: string, { providerState, counts, externalId }: JobStatus): string {
  const done = counts === null ? '' : `, ${counts.completed + counts.failed}/${counts.total} done`;
  return `${provider}: ${externalId} ${providerState}${done}`;
}
