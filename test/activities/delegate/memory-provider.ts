import { wireId } from '../../../core/delegation/job-ids';
import type {
  CallFailure,
  IdempotentResult,
  InputState,
  JobStatus,
  LineResult,
  Provider,
} from '../../../providers/provider';

/** What a {@link MemoryProvider} has been asked for, by the name of the call. */
export type Call = 'upload' | 'find' | 'create' | 'status' | 'results' | 'cancel';

interface RemoteJob {
  readonly jobId: string;
  state: JobStatus['state'];
  hasAllResults: boolean;
  isQuotaRefusal: boolean;
  lineErrors: JobStatus['lineErrors'];
}

const FAILURE: CallFailure = {
  code: null,
  message: 'as scripted',
  status: 500,
  retryAfterMs: null,
};

/** A provider in memory. A test scripts the outcome of calls, and decides how jobs end. */
export class MemoryProvider implements Provider {
  readonly account = 'account-1';
  readonly calls: Call[] = [];
  /** Jobs by their id at the provider. */
  readonly jobs = new Map<string, RemoteJob>();
  readonly cancelled: string[] = [];
  /** The inputs that were uploaded. */
  readonly uploads: string[] = [];
  /** States of the uploaded input at the next looks; without any, it is ready. */
  readonly inputStates: InputState[] = [];
  lines: LineResult[] = [];
  /** Outcomes of the next calls; without any, they succeed. */
  readonly scripted: Partial<Record<Call, string[]>> = {};
  retryAfterMs: number | null = null;
  /** Called when a create has been accepted, before it is answered. */
  onAccepted: () => Promise<void> = () => Promise.resolve();
  /** Results of single jobs; without any, one result of the first line, or {@link lines}. */
  readonly firstResults = new Map<string, LineResult[]>();
  /** Malformed lines of the next reads of results; without any, there are none. */
  readonly malformed: number[] = [];
  /** What the provider counts of each job; without it, nothing is counted. */
  counts: JobStatus['counts'] = null;
  /** How many results were handed over. */
  readResults = 0;
  capabilities: Provider['capabilities'] = {
    ...{ input: 'uploaded', find: 'list', storesMarker: true },
    ...{ isSingleModel: true, canCancel: true, maxLines: null, maxBytes: null },
    ...{ maxEmbeddingInputs: null, minPollMs: 0, settleMs: 0, resultsLagMs: 60_000 },
  };

  /** From now on only the results of a job tell whose it is. */
  recogniseByResults(): void {
    this.capabilities = { ...this.capabilities, find: 'window', storesMarker: false };
  }

  /** A job that another program, or another job of this installation, has created. */
  addJob(externalId: string, jobId: string): void {
    this.jobs.set(externalId, {
      ...{ jobId, state: 'running', hasAllResults: true, isQuotaRefusal: false, lineErrors: [] },
    });
  }

  encode({ wireId, body }: Parameters<Provider['encode']>[0]): ReturnType<Provider['encode']> {
    if (body.includes('"bad"')) return { kind: 'refused', param: 'bad', message: 'no' };
    const bytes = Buffer.from(`{"custom_id":"${wireId}","body":${String(body)}}`);
    const [, common] = /"common":"(\w+)"/.exec(String(body)) ?? [];
    return { kind: 'line', bytes, ...(common !== undefined && { common }) };
  }

  completionWindow(): string {
    return '24h';
  }

  async upload(
    _: unknown,
    input: Parameters<Provider['upload']>[1],
  ): Promise<IdempotentResult<string>> {
    const failed = this.#begin('upload');
    if (failed !== null) return failed;
    let text = '';
    for await (const piece of input.open()) text += Buffer.from(piece).toString();
    this.uploads.push(text);
    return { outcome: 'ok', value: `file-${this.uploads.length}` };
  }

  inputState(): ReturnType<Provider['inputState']> {
    return Promise.resolve({ outcome: 'ok', value: this.inputStates.shift() ?? 'ready' });
  }

  find({ jobId }: { jobId: string }): ReturnType<Provider['find']> {
    const failed = this.#begin('find');
    if (failed !== null) return Promise.resolve(failed);
    if (this.capabilities.find === 'window') {
      const externalIds = [...this.jobs.keys()];
      const value =
        externalIds.length === 0
          ? { kind: 'none' as const }
          : { kind: 'candidates' as const, externalIds };
      return Promise.resolve({ outcome: 'ok', value });
    }
    const [externalId] = [...this.jobs].find(([, job]) => job.jobId === jobId) ?? [];
    return Promise.resolve({
      outcome: 'ok',
      value:
        externalId === undefined
          ? { kind: 'none' }
          : { kind: 'job', job: { externalId, createdAtMs: null } },
    });
  }

  async create(
    { jobId }: { jobId: string },
    { mayLeave }: { mayLeave: () => boolean },
  ): ReturnType<Provider['create']> {
    const failed = this.#begin('create');
    const failure = { ...FAILURE, retryAfterMs: this.retryAfterMs };
    if (!mayLeave()) return { outcome: 'not_sent', failure };
    // The provider has never received it, which the caller cannot tell from a lost answer.
    if ((failed?.outcome as string | undefined) === 'lost')
      return { outcome: 'ambiguous', failure };
    if (failed !== null && (failed.outcome as string) !== 'ambiguous') return failed as never;
    const externalId = `remote-${this.jobs.size + 1}`;
    this.addJob(externalId, jobId);
    await this.onAccepted();
    if (failed !== null) return failed as never;
    return { outcome: 'accepted', value: { externalId, createdAtMs: null } };
  }

  status(externalId: string): ReturnType<Provider['status']> {
    const failed = this.#begin('status');
    const job = this.jobs.get(externalId);
    if (failed !== null) return Promise.resolve(failed);
    if (job === undefined) return Promise.resolve({ outcome: 'gone', failure: FAILURE });
    const { state, hasAllResults, isQuotaRefusal, lineErrors } = job;
    const value: JobStatus = {
      ...{ externalId, state, providerState: state, isKnownState: true, counts: this.counts },
      ...{ error: null, lineErrors, isQuotaRefusal, resultFiles: [], hasAllResults, usage: null },
    };
    return Promise.resolve({ outcome: 'ok', value });
  }

  async results(
    { externalId }: { externalId: string },
    take: (result: LineResult) => void | Promise<void>,
  ): ReturnType<Provider['results']> {
    const failed = this.#begin('results');
    // A download that fails may have brought some results.
    for (const result of this.#resultsOf(externalId)) {
      this.readResults++;
      await take(result);
    }
    if (failed !== null) return failed;
    return {
      outcome: 'ok',
      value: { results: this.lines.length, malformed: this.malformed.shift() ?? 0 },
    };
  }

  cancel(externalId: string): ReturnType<Provider['cancel']> {
    const failed = this.#begin('cancel');
    if (failed !== null) return Promise.resolve(failed);
    this.cancelled.push(externalId);
    return Promise.resolve({ outcome: 'ok', value: 'requested' });
  }

  cleanup(): ReturnType<Provider['cleanup']> {
    return Promise.resolve({ outcome: 'ok', value: undefined });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #resultsOf(externalId: string): LineResult[] {
    const jobId = this.jobs.get(externalId)?.jobId;
    const own = this.firstResults.get(externalId);
    if (own !== undefined || this.lines.length > 0 || jobId === undefined) return own ?? this.lines;
    if (this.capabilities.find !== 'window') return [];
    return [{ kind: 'unanswered', wireId: wireId(jobId, 0), reason: 'expired' }];
  }

  #begin(call: Call): Exclude<IdempotentResult<never>, { outcome: 'ok' }> | null {
    this.calls.push(call);
    const outcome = this.scripted[call]?.shift();
    if (outcome === undefined) return null;
    return {
      outcome: outcome as 'transient',
      failure: { ...FAILURE, retryAfterMs: this.retryAfterMs },
    };
  }
}
