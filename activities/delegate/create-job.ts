import { randomUUID } from 'node:crypto';
import type {
  CreateAction,
  CreateEvent,
  LookUp,
  RecordResult,
} from '../../core/delegation/create-attempt';
import { CreateAttempt, type CreateEnd } from '../../core/delegation/create-attempt';
import type { Clocks } from '../../core/delegation/create-lease';
import { leaseLengthMs } from '../../core/delegation/create-lease';
import { isNightshiftError } from '../../core/errors';
import type { CallOptions } from '../../providers/provider';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { pause } from '../runtime/pause';
import type { JobAttempt } from './job-attempt';
import { CLOCK_SKEW_MS, jobToFind, logFailure, observedCall } from './job-attempt';
import { stagedBody } from './upload-job';

/** Time for an answer to arrive and be noted, within the lease. */
const RESERVE_MS = 2_000;
const RECORD_AGAIN_MS = 1_000;

/**
 * One attempt to create a job: does what {@link CreateAttempt} says, which holds the rules
 * (docs/design/provider-jobs.md#one-attempt). A stop keeps what is on its way from being cut off.
 */
export async function createJob(
  attempt: JobAttempt,
  row: JobRow,
  signal: AbortSignal,
): Promise<CreateEnd> {
  const { capabilities } = attempt.provider.api;
  const inlineBytes = capabilities.input === 'inline' ? (row.bytes ?? 0) : 0;
  const lengthMs = leaseLengthMs(attempt.provider.config.create_lease, inlineBytes);
  const protocol = new CreateAttempt({ takenAt: clocks(), lengthMs }, attempt.provider.settleMs);
  const actions = new CreateActions({ attempt, row, protocol, lengthMs, signal });
  for (let action = protocol.action; ;) {
    if (action.do === 'end') {
      if (action.end.kind === 'created') await cancelSurplus(attempt, action.end.surplusId);
      return action.end;
    }
    action = protocol.next(await actions.perform(action), clocks());
  }
}

/** The row holds another job: the one that this attempt has created must not run beside it. */
async function cancelSurplus(attempt: JobAttempt, externalId: string | null): Promise<void> {
  if (externalId === null) return;
  const { provider, deps } = attempt;
  const signal = AbortSignal.timeout(provider.config.request_timeout);
  const ask = (call: CallOptions) => provider.api.cancel(externalId, call);
  const { outcome } = await observedCall(attempt, 'cancel', ask, signal);
  const log = { jobId: attempt.input.job.jobId, externalId, provider: provider.name, outcome };
  deps.logger.error(log, 'cancel of a surplus job requested');
}

interface CreateActionsParts {
  readonly attempt: JobAttempt;
  readonly row: JobRow;
  readonly protocol: CreateAttempt;
  readonly lengthMs: number;
  /** Aborts when the activity is cancelled: then no create begins. */
  readonly signal: AbortSignal;
}

/** The actions of an attempt, on the real provider and the real rows. */
class CreateActions {
  readonly #o: CreateActionsParts;
  readonly #holder: { readonly jobId: string; readonly token: string };
  /** Why the provider refused. */
  #refusal = { code: null as string | null, message: '' };
  #mayExistSinceMs: number | null = null;

  constructor(parts: CreateActionsParts) {
    this.#o = parts;
    this.#holder = { jobId: parts.row.id, token: randomUUID() };
  }

  async perform(action: Exclude<CreateAction, { do: 'end' }>): Promise<CreateEvent> {
    const { jobs } = this.#o.attempt.deps;
    switch (action.do) {
      case 'take_lease':
        return this.#takeLease();
      case 'look_up':
        return { of: 'look_up', found: await this.#lookUp() };
      case 'note_candidates': {
        const left = await jobs.noteCandidates(this.#holder, action.externalIds);
        return { of: 'note_candidates', left: left?.length ?? null };
      }
      case 'create':
        return this.#create();
      case 'record':
        return { of: 'record', result: await this.#record(action) };
      case 'give_back': {
        const { noCapacity, isAbsent, end } = action;
        await jobs.giveLeaseBack(this.#holder, { noCapacity, isAbsent, asksAgainMs: end.afterMs });
        return { of: 'give_back' };
      }
      case 'refuse':
        return { of: 'refuse', done: await jobs.refuseCreate(this.#holder, this.#refusal) };
    }
  }

  async #takeLease(): Promise<CreateEvent> {
    const { attempt, lengthMs } = this.#o;
    const { deps, provider } = attempt;
    const { max_open_jobs: maxOpenJobs, max_enqueued_tokens: maxEnqueuedTokens } = provider.config;
    const answer = await deps.jobs.takeLease({
      ...this.#holder,
      leaseMs: lengthMs,
      settleMs: provider.settleMs,
      account: provider.account,
      isProvenByResults: provider.api.capabilities.find === 'window',
      limits: { maxOpenJobs, maxEnqueuedTokens },
    });
    this.#mayExistSinceMs = answer.kind === 'no_row' ? null : answer.mayExistSinceMs;
    const capacityRefusals = answer.kind === 'no_row' ? 0 : answer.capacityRefusals;
    return { of: 'take_lease', answer, capacityRefusals };
  }

  async #lookUp(): Promise<LookUp> {
    const { attempt, row } = this.#o;
    const { api } = attempt.provider;
    const job = { ...(await jobToFind(attempt, row)), ...this.#searchFrom() };
    // Not the activity's signal: a look-up that is cut off would hold the lease for nothing.
    const signal = AbortSignal.timeout(Math.max(1, Math.floor(this.#leftMs())));
    const result = await observedCall(attempt, 'find', (call) => api.find(job, call), signal);
    if (result.outcome !== 'ok') {
      logFailure(attempt, 'find', result);
      const { outcome, failure } = result;
      return { kind: 'failed', outcome, retryAfterMs: failure.retryAfterMs };
    }
    const found = result.value;
    return found.kind === 'job' ? { kind: 'job', externalId: found.job.externalId } : found;
  }

  /** Each foreign job that a look-up finds has to end before anything is created, so it looks back no further than need be. */
  #searchFrom(): { listFromMs?: number } {
    if (this.#o.attempt.provider.api.capabilities.find !== 'window') return {};
    return this.#mayExistSinceMs === null
      ? {}
      : { listFromMs: this.#mayExistSinceMs - CLOCK_SKEW_MS };
  }

  async #create(): Promise<CreateEvent> {
    const { attempt, row, signal } = this.#o;
    const { provider, deps } = attempt;
    const job = await jobToFind(attempt, row);
    const isInline = provider.api.capabilities.input === 'inline';
    const leftMs = this.#leftMs() - RESERVE_MS;
    const result = await provider.api.create(
      { ...job, inline: isInline ? stagedBody(deps.store, row) : null },
      {
        // Once it is on its way, only its outcome ends the call: a stop waits for it.
        signal: new AbortController().signal,
        timeoutMs: isInline ? leftMs : Math.min(leftMs, provider.config.request_timeout),
        mayLeave: () => !signal.aborted && this.#leftMs() > RESERVE_MS,
      },
    );
    deps.observer.called(provider.name, 'create', result.outcome);
    if (result.outcome === 'accepted') {
      return { of: 'create', outcome: 'accepted', externalId: result.value.externalId };
    }
    const { outcome, failure } = result;
    logFailure(attempt, 'create', result);
    this.#refusal = { code: failure.code, message: failure.message };
    return { of: 'create', outcome, retryAfterMs: failure.retryAfterMs };
  }

  /** Waits for PostgreSQL as long as this process lives; the next attempt would have to find the job. */
  async #record({ externalId, adopted }: RecordedId): Promise<RecordResult> {
    const { attempt } = this.#o;
    const { deps, provider } = attempt;
    const { jobId } = this.#holder;
    const log = { jobId, externalId, provider: provider.name, adopted };
    try {
      const result = await deps.jobs.recordCreated(jobId, { externalId, adopted });
      const isOurs = result.kind === 'recorded' && result.externalId === externalId;
      if (isOurs) deps.logger.info(log, 'job submitted');
      else deps.logger.error({ ...log, result }, 'the row cannot take the id of a job');
      if (isOurs && adopted) deps.observer.adopted(provider.name);
      return result;
    } catch (error) {
      if (!isNightshiftError(error) || !error.retryable || deps.drain.aborted) throw error;
      deps.logger.warn({ ...log, err: error }, 'the id of a job could not be noted, trying again');
      await pause(RECORD_AGAIN_MS, deps.drain);
      return { kind: 'unavailable' };
    }
  }

  #leftMs(): number {
    return this.#o.protocol.leftMs(clocks());
  }
}

type RecordedId = Pick<Extract<CreateAction, { do: 'record' }>, 'externalId' | 'adopted'>;

function clocks(): Clocks {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
