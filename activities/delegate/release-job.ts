import { quietMs } from '../../core/delegation/create-lease';
import { isSettled } from '../../core/delegation/job-steps';
import type { CallOptions, IdempotentResult, JobStatus } from '../../providers/provider';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { costOf } from './cost';
import type { DelegateDeps, OpenProvider } from './deps';
import { END_OUTCOMES } from './end-outcomes';
import { CLOCK_SKEW_MS, jobToFind } from './job-attempt';
import type { ProviderCall } from './observer';
import type { Proof, Prover } from './prove-candidates';
import { proveCandidates, unprovenOf } from './prove-candidates';

/** What {@link releaseJob} needs. */
export type ReleaseDeps = Pick<DelegateDeps, 'batches' | 'config' | 'observer' | 'logger'> & {
  readonly jobs: Pick<
    DelegateDeps['jobs'],
    | 'abandon'
    | 'recordCreated'
    | 'recordObservation'
    | 'release'
    | 'withoutOwner'
    | 'isOnlyOneMissing'
  >;
  readonly storeId: string;
};

/** One look at a job whose batch has ended. */
export interface Visit {
  readonly provider: OpenProvider;
  readonly signal: AbortSignal;
  /** Wall clock, Unix ms. */
  readonly nowMs: number;
}

/** `later`: it is visited again. `auth`: so is every job of the provider, and no call to it makes sense now. */
export type Released = 'released' | 'later' | 'auth';

/** Ends of a cleanup that another try would not change. The log tells of a refusal. */
const IS_OVER = ['ok', 'gone', 'refused'];

/**
 * Leaves nothing of a job at its provider, after its batch has ended: looks for it if it may have been created,
 * cancels it until it has ended, notes what it cost, and deletes its files. Each step may be repeated, also beside
 * another process. One visit makes at most four calls (docs/design/delegation.md#cleaning-up).
 */
export function releaseJob(row: JobRow, deps: ReleaseDeps, visit: Visit): Promise<Released> {
  return new JobVisit(row, deps, visit).run();
}

class JobVisit {
  readonly #row: JobRow;
  readonly #deps: ReleaseDeps;
  readonly #visit: Visit;

  constructor(row: JobRow, deps: ReleaseDeps, visit: Visit) {
    this.#row = row;
    this.#deps = deps;
    this.#visit = visit;
  }

  async run(): Promise<Released> {
    const { id, step, externalId, firstCreateAtMs } = this.#row;
    // Nothing waits for it any more, and from here on no attempt may create it.
    if (!isSettled(step)) await this.#deps.jobs.abandon(id);
    if (externalId !== null) return this.#end(externalId);
    return firstCreateAtMs === null ? this.#clean(null, []) : this.#lookUp();
  }

  /** The answer to a create was lost. The job may appear until the quiet time after its lease has passed. */
  async #lookUp(): Promise<Released> {
    const row = this.#row;
    const { api } = this.#visit.provider;
    const { storeId } = this.#deps;
    // The endpoint does not recognise a job.
    const input = { batchId: row.batchId, endpoint: '' };
    const job = await jobToFind({ input, storeId, deps: this.#deps }, row);
    const found = await this.#call('find', (options) => api.find(job, options));
    if (found.outcome !== 'ok') return laterAfter(found);
    const { value } = found;
    if (value.kind === 'job') return this.#adopt(value.job.externalId);
    const proof = await this.#prove(value.kind === 'candidates' ? value.externalIds : []);
    if (proof.proven !== null) return this.#adopt(proof.proven);
    const quietAtMs = (row.creatingUntilMs ?? 0) + quietMs(this.#visit.provider.settleMs);
    const isCertain = proof.open.length === 0 && this.#visit.nowMs > quietAtMs + CLOCK_SKEW_MS;
    return isCertain ? this.#clean(null, []) : 'later';
  }

  /** Candidates are only looked at: until its results prove one, it may be somebody else's job. */
  async #prove(externalIds: readonly string[]): Promise<Proof> {
    const { jobs } = this.#deps;
    const { provider } = this.#visit;
    const candidates = await unprovenOf(this.#row, externalIds, jobs);
    const call: Prover['call'] = (what, ask) => this.#call(what, ask);
    return proveCandidates(this.#row, candidates, { provider, jobs, endpoint: '', call });
  }

  async #adopt(externalId: string): Promise<Released> {
    const job = { externalId, adopted: true };
    const recorded = await this.#deps.jobs.recordCreated(this.#row.id, job);
    // A job that belongs to another row is not ours to cancel.
    if (recorded.kind !== 'recorded') return 'later';
    this.#deps.observer.adopted(this.#visit.provider.name);
    return this.#end(recorded.externalId);
  }

  /** Cancels the job until it has ended. */
  async #end(externalId: string): Promise<Released> {
    const { provider } = this.#visit;
    // Its end is known, and nothing is deleted.
    if (this.#row.step === 'collected' && provider.config.keep_remote)
      return this.#clean(externalId, []);
    const looked = await this.#call('status', (call) => provider.api.status(externalId, call));
    if (looked.outcome === 'gone') return this.#clean(externalId, []);
    if (looked.outcome !== 'ok') return laterAfter(looked);
    const { value: status } = looked;
    if (END_OUTCOMES[status.state] !== undefined) {
      await this.#note(status);
      return this.#clean(externalId, status.resultFiles);
    }
    if (status.state === 'cancelling') return 'later';
    const cancelled = await this.#call('cancel', (call) => provider.api.cancel(externalId, call));
    return laterAfter(cancelled);
  }

  /** What a job cost whose answers came too late. That of a collected one is known. */
  async #note({ providerState, counts, usage }: JobStatus): Promise<void> {
    const { config, jobs, observer } = this.#deps;
    const { id, step, model, provider, costUsd: known } = this.#row;
    if (step === 'collected') return;
    const costUsd = usage === null ? null : costOf(usage, config.delegates[model]?.price);
    await jobs.recordObservation(id, {
      providerStatus: providerState,
      ...(counts === null ? {} : { counts }),
      ...(usage === null ? {} : { usage }),
      costUsd,
    });
    if (known !== null) return;
    observer.collected({ provider, model, costUsd, ...NO_LINES });
  }

  async #clean(externalId: string | null, resultFiles: readonly string[]): Promise<Released> {
    const row = this.#row;
    const { provider } = this.#visit;
    const remoteInputs = row.upload === null ? [] : [row.upload];
    const isEmpty = remoteInputs.length + resultFiles.length === 0;
    if (!isEmpty && !provider.config.keep_remote) {
      const remains = { externalId, remoteInputs, resultFiles };
      const cleaned = await this.#call('cleanup', (call) => provider.api.cleanup(remains, call));
      // Not `auth`: a key that may not delete files can cancel the other jobs nevertheless.
      if (!IS_OVER.includes(cleaned.outcome)) return 'later';
    }
    await this.#deps.jobs.release(row.id);
    return 'released';
  }

  async #call<T>(
    what: ProviderCall,
    ask: (options: CallOptions) => Promise<IdempotentResult<T>>,
  ): Promise<IdempotentResult<T>> {
    const { observer, logger } = this.#deps;
    const { provider, signal } = this.#visit;
    const result = await ask({ signal });
    observer.called(provider.name, what, result.outcome);
    if (result.outcome === 'ok' || result.outcome === 'gone') return result;
    const { outcome, failure } = result;
    const log = { provider: provider.name, jobId: this.#row.id, call: what, outcome, ...failure };
    logger.warn(log, 'call to a provider failed');
    return result;
  }
}

const NO_LINES = { answered: 0, failed: 0, unanswered: 0, doubled: 0, foreign: 0 };

function laterAfter({ outcome }: { readonly outcome: string }): Released {
  return outcome === 'auth' ? 'auth' : 'later';
}
