import { hopsOf } from '../../core/delegation/hops';
import type {
  CallFailure,
  CallOptions,
  IdempotentResult,
  JobToFind,
} from '../../providers/provider';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { JobInput } from './contract';
import type { DelegateDeps, OpenProvider } from './deps';
import type { ProviderCall } from './observer';
import { notBeyond, retryLater } from './retry-later';

/** One attempt at a step of a job. */
export interface JobAttempt {
  readonly deps: DelegateDeps;
  readonly input: JobInput;
  readonly provider: OpenProvider;
  readonly storeId: string;
}

/** How long a worker that lacks something waits before it asks again. */
const ASK_AGAIN_MS = 30_000;
const AUTH_MS = 300_000;
const CAPACITY_MS = 60_000;
const MIN_PAUSE_MS = 5_000;
/** Clocks of this installation and its provider may differ by so much. */
export const CLOCK_SKEW_MS = 600_000;

/** @throws a failure that is retried if this process has no such provider */
export async function attemptAt(input: JobInput, deps: DelegateDeps): Promise<JobAttempt> {
  const provider = deps.provider(input.provider);
  if (provider === null) {
    throw retryLater(`This worker has no provider "${input.provider}".`, ASK_AGAIN_MS);
  }
  return { deps, input, provider, storeId: await deps.store.storeId() };
}

/** The row of the job. If PostgreSQL was restored to a state without it, it is made again. */
export async function rowOf({ deps, input, provider }: JobAttempt): Promise<JobRow> {
  const { job, batchId, tenant, model, safe } = input;
  const row = await deps.jobs.find(job.jobId);
  if (row !== null) return row;
  const { jobId, from, to, generation, ordinal } = job;
  const providerModel = deps.config.delegates[model]?.model ?? model;
  return deps.jobs.open({
    ...{ id: jobId, batchId, tenant, model, safeModel: safe, providerModel },
    ...{ from, to, generation, ordinal },
    provider: provider.name,
    account: provider.account,
  });
}

/** What {@link jobToFind} needs of an attempt. */
export interface JobSeeker {
  readonly input: Pick<JobInput, 'batchId' | 'endpoint'>;
  readonly storeId: string;
  readonly deps: Pick<DelegateDeps, 'batches'>;
}

/** Who the job is, for the provider. */
export async function jobToFind(seeker: JobSeeker, row: JobRow): Promise<JobToFind> {
  const { input, storeId, deps } = seeker;
  const batch = await deps.batches.find(input.batchId);
  const createdAtMs = batch === null ? row.createdAtMs : batch.createdAtSec * 1000;
  return {
    jobId: row.id,
    storeId,
    endpoint: input.endpoint,
    model: row.providerModel,
    lines: row.lines ?? 0,
    hops: hopsOf(batch?.metadata ?? null),
    remoteInput: row.upload,
    window: row.sentWindow,
    listFromMs: createdAtMs - CLOCK_SKEW_MS,
  };
}

/** Makes a call and counts its outcome. */
export async function observedCall<T>(
  { deps, provider }: JobAttempt,
  what: ProviderCall,
  call: (options: CallOptions) => Promise<IdempotentResult<T>>,
  signal: AbortSignal,
): Promise<IdempotentResult<T>> {
  const result = await call({ signal });
  deps.observer.called(provider.name, what, result.outcome);
  return result;
}

/** Tells operators why a call failed, in the provider's words. */
export function logFailure(
  { provider, deps, input }: JobAttempt,
  what: ProviderCall,
  { outcome, failure }: { readonly outcome: string; readonly failure: CallFailure },
): void {
  const { jobId } = input.job;
  const log = { provider: provider.name, jobId, call: what, outcome, ...failure };
  deps.logger.warn(log, 'call to a provider failed');
}

/** A call that did not succeed. */
export type FailedResult = Exclude<IdempotentResult<unknown>, { outcome: 'ok' }>;

/** Logs a failed call; returns what the Temporal UI shows, and how long to wait before the next attempt, ms. */
export function reportFailure(
  attempt: JobAttempt,
  what: ProviderCall,
  result: FailedResult,
): { readonly message: string; readonly pauseMs: number } {
  logFailure(attempt, what, result);
  const { outcome, failure } = result;
  const status = failure.status === null ? '' : ` (HTTP ${failure.status})`;
  const message = `${attempt.provider.name}: ${what} failed: ${outcome}${status}`;
  return { message, pauseMs: pauseAfter(result) };
}

/** The failure that makes the server retry a call. The next attempt begins by `untilMs`, Unix ms. */
export function failedCall(
  attempt: JobAttempt,
  what: ProviderCall,
  result: FailedResult,
  untilMs: number,
): Error {
  const { message, pauseMs } = reportFailure(attempt, what, result);
  return retryLater(message, notBeyond(pauseMs, untilMs, Date.now()));
}

/** Soon, or after what the provider asks for; credentials are repaired by a person. */
function pauseAfter({ outcome, failure }: FailedResult): number {
  if (outcome === 'auth') return AUTH_MS;
  const leastMs = outcome === 'capacity' ? CAPACITY_MS : MIN_PAUSE_MS;
  return failure.retryAfterMs === null ? leastMs : Math.max(MIN_PAUSE_MS, failure.retryAfterMs);
}
