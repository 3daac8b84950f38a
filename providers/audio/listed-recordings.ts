import { leaseLeftMs, type Clocks } from '../../core/delegation/create-lease';
import type { CreateResult, IdempotentResult, SendOptions } from '../provider';
import type { RemoteFolder } from '../remote-folder';

/** Where the recordings of a job are, and how many there have to be. */
export interface RecordingsToList {
  readonly folder: RemoteFolder;
  /** The beginning of their names. */
  readonly prefix: string;
  readonly lines: number;
}

/**
 * Lists the recordings of a job, and creates it with their addresses. Both calls are within the time of the create,
 * which ends with the lease. Without all recordings nothing is sent that could make a job.
 */
export async function createWithRecordings(
  { folder, prefix, lines }: RecordingsToList,
  call: SendOptions,
  create: (uris: readonly string[], call: SendOptions) => Promise<CreateResult>,
): Promise<CreateResult> {
  const lease = { takenAt: clocks(), lengthMs: call.timeoutMs };
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(call.timeoutMs)]);
  const names = await folder.list(prefix, { signal });
  if (names.outcome !== 'ok') return withoutJob(names);
  if (names.value.length < lines) {
    const message = `${lines - names.value.length} recordings are gone from the container`;
    return withoutJob({ outcome: 'gone', failure: { ...NO_ANSWER, message } });
  }
  const uris = names.value.map((name) => folder.uri(name));
  return create(uris, { ...call, timeoutMs: leaseLeftMs(lease, clocks()) });
}

const NO_ANSWER = { code: 'input_file_not_found', status: null, retryAfterMs: null };

function clocks(): Clocks {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

function withoutJob(
  failed: Exclude<IdempotentResult<never>, { readonly outcome: 'ok' }>,
): CreateResult {
  const { outcome, failure } = failed;
  if (outcome === 'transient') return { outcome: 'not_sent', failure };
  return { outcome: outcome === 'gone' ? 'refused' : outcome, failure };
}
