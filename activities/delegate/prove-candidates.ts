import { positionOfWireId } from '../../core/delegation/job-ids';
import type { CallOptions, IdempotentResult, JobStatus } from '../../providers/provider';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { DelegateDeps, OpenProvider } from './deps';
import { END_OUTCOMES } from './end-outcomes';
import type { ProviderCall } from './observer';

/** Results of a candidate that are read. A few that do not belong to it must not refute it. */
const MOST_READ = 100;

/** What {@link proveCandidates} works with. */
export interface Prover {
  readonly provider: OpenProvider;
  readonly jobs: Pick<DelegateDeps['jobs'], 'isOnlyOneMissing'>;
  /** The endpoint of the batch. */
  readonly endpoint: string;
  /** Makes a call, counts its outcome and logs its failure. */
  call<T>(
    what: ProviderCall,
    ask: (options: CallOptions) => Promise<IdempotentResult<T>>,
  ): Promise<IdempotentResult<T>>;
}

/** What is known of candidates. */
export interface Proof {
  /** The one that is the job; the others are not looked at then. */
  readonly proven: string | null;
  /** Those that are certainly another job. */
  readonly refuted: readonly string[];
  /** Those that have not ended, or could not be asked. Never cancel or delete one. */
  readonly open: readonly string[];
  /** Among `open`: those that the provider does not know by their id. */
  readonly gone: readonly string[];
}

/**
 * Looks at jobs of the provider that may be the job of the row. The results of an ended one have wire ids, which say
 * whose job it is (docs/design/provider-jobs.md#proof-by-results). In an account that only this
 * installation uses, a single candidate is the job if no other job of the same size is missing. It costs one call per
 * candidate, and one more for each that has ended.
 */
export async function proveCandidates(
  row: JobRow,
  candidates: readonly string[],
  prover: Prover,
): Promise<Proof> {
  const refuted: string[] = [];
  const open: string[] = [];
  const gone: string[] = [];
  for (const externalId of candidates) {
    const verdict = await judge(row, externalId, prover);
    if (verdict === 'proven') return { proven: externalId, refuted, open, gone };
    if (verdict === 'refuted') refuted.push(externalId);
    else open.push(externalId);
    if (verdict === 'gone') gone.push(externalId);
  }
  const [single] = candidates.length === 1 ? open : [];
  const isOurs =
    single !== undefined &&
    gone.length === 0 &&
    prover.provider.isExclusive &&
    (await prover.jobs.isOnlyOneMissing(row.id));
  return { proven: isOurs ? single : null, refuted, open, gone };
}

/**
 * Of the jobs that a look-up has found, those that may be the job of the row: no other row owns them, and an earlier
 * look-up after the last create has seen them too. @throws postgres_unavailable
 */
export async function unprovenOf(
  row: JobRow,
  found: readonly string[],
  jobs: Pick<DelegateDeps['jobs'], 'withoutOwner'>,
): Promise<string[]> {
  const known = row.candidates;
  const possible = known === null ? found : found.filter((id) => known.includes(id));
  return possible.length === 0 ? [] : jobs.withoutOwner(row.id, possible);
}

async function judge(
  row: JobRow,
  externalId: string,
  prover: Prover,
): Promise<'proven' | 'refuted' | 'open' | 'gone'> {
  const { api } = prover.provider;
  const looked = await prover.call('status', (options) => api.status(externalId, options));
  if (looked.outcome !== 'ok') return looked.outcome === 'gone' ? 'gone' : 'open';
  const status = looked.value;
  if (END_OUTCOMES[status.state] === undefined) return 'open';
  return verdictOf(row, status, prover);
}

/** Reads results until one is of this job. A download that breaks off before that proves nothing. */
async function verdictOf(
  row: JobRow,
  status: JobStatus,
  { provider, endpoint, call }: Prover,
): Promise<'proven' | 'refuted' | 'open'> {
  const answers = { endpoint, model: row.model, createdSec: 0 };
  let read = 0;
  let isOurs = false;
  const take = ({ wireId }: { readonly wireId: string }) => {
    read++;
    isOurs = positionOfWireId(row.id, wireId) !== null;
    if (isOurs || read === MOST_READ) throw new EnoughRead();
  };
  const end = await call('results', async (options) => {
    try {
      return await provider.api.results(status, take, { ...options, ...answers });
    } catch (error) {
      if (!(error instanceof EnoughRead)) throw error;
      return { outcome: 'ok', value: { results: read, malformed: 0 } };
    }
  });
  if (isOurs) return 'proven';
  return end.outcome === 'ok' && read > 0 ? 'refuted' : 'open';
}

/** Ends a download. */
class EnoughRead extends Error {}
