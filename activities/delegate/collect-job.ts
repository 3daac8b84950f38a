import type { JobOutcome } from '../../core/delegation/job-steps';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { retryStep } from '../execute/retry-step';
import type { Heartbeat } from '../runtime/heartbeat';
import { withHeartbeat } from '../runtime/with-heartbeat';
import type { CollectedJob, CollectJobInput, JobInput } from './contract';
import { CustomIds } from './custom-ids';
import type { DelegateDeps } from './deps';
import { eachJob, jobsOf, throwWaits } from './each-job';
import { costOf } from './cost';
import type { JobAttempt } from './job-attempt';
import type { FetchNote } from './fetch-results';
import { fetchResults } from './fetch-results';
import { attemptAt, rowOf } from './job-attempt';
import { JobNotes } from './job-notes';
import { keepRefused } from './keep-refused';
import { PartJournal } from './part-journal';
import type { PartLedger } from './part-ledger';
import { openPart } from './part-ledger';
import { ResultTaker } from './result-taker';
import { retryLater } from './retry-later';

/**
 * The activity that writes the answers of a job into the journal, as a chunk does. It may run any number of
 * times, and beside another attempt: what the journal answers is skipped
 * (docs/design/delegation.md#collecting).
 */
export function createCollectJob(
  deps: DelegateDeps,
): (input: CollectJobInput) => Promise<CollectedJob> {
  return async (input) => {
    const notes = new JobNotes<FetchNote>(input);
    const work = (heartbeat: Heartbeat) =>
      deps.parts.run(() => collect(input, deps, { heartbeat, notes }));
    return withHeartbeat(work, { details: () => notes.details, beatsOnFailure: true });
  };
}

interface CollectAttempt {
  readonly heartbeat: Heartbeat;
  readonly notes: JobNotes<FetchNote>;
}

async function collect(
  input: CollectJobInput,
  deps: DelegateDeps,
  { heartbeat, notes }: CollectAttempt,
): Promise<CollectedJob> {
  const { batchId, safe, job } = input;
  const known = await knownJobs(input, deps);
  const key = { batchId, safeModel: safe, from: job.from, to: job.to };
  const lease = await deps.progress.begin(key, heartbeat.signal);
  let ledger: PartLedger | null = null;
  try {
    ledger = await openPart(deps, input);
    lease.trackCounts(ledger);
    // A batch that has ended needs no more answers, and its journal may be removed.
    if (!lease.terminal) await harvest(input, known, { deps, ledger, lease, heartbeat, notes });
    return resultOf(ledger, lease, input.taken);
  } finally {
    const counts = ledger?.countsBeforeNext() ?? { completed: 0, failed: 0 };
    await lease.release({ to: ledger?.next ?? job.from, ...counts });
  }
}

/** A job of the part, and its row. */
interface PartJob {
  readonly attempt: JobAttempt;
  readonly row: JobRow;
}

async function knownJobs(input: JobInput, deps: DelegateDeps): Promise<readonly PartJob[]> {
  const jobs = await eachJob(jobsOf(input), async (one) => {
    const attempt = await attemptAt(one, deps);
    return { attempt, row: await rowOf(attempt) };
  });
  throwWaits(jobs);
  return jobs.values;
}

interface Harvest extends CollectAttempt {
  readonly deps: DelegateDeps;
  readonly ledger: PartLedger;
  readonly lease: ChunkLease;
}

/** What was read of a job. */
interface FetchedJob extends PartJob {
  readonly taker: ResultTaker;
  /** False if no more of its results can be had. */
  readonly isComplete: boolean;
}

/**
 * Reads the results of ended jobs from the provider, and keeps what staging has refused. All of it is in the journal
 * before a row says that its job is collected.
 */
async function harvest(
  input: JobInput,
  known: readonly PartJob[],
  { deps, ledger, lease, heartbeat, notes }: Harvest,
): Promise<void> {
  const reader = await deps.store.open(input.inputKey);
  const journal = new PartJournal(deps.journal, input, ledger);
  const customIds = new CustomIds({ ledger, reader, heartbeat });
  const fetchOne = async ({ attempt, row }: PartJob): Promise<FetchedJob> => {
    const taker = new ResultTaker({ attempt, row, ledger, journal, customIds });
    const context = { taker, heartbeat, note: notes.of(attempt.input) };
    return { attempt, row, taker, isComplete: await fetchResults(attempt, row, context) };
  };
  try {
    const ended = known.filter(({ row }) => row.step === 'ended');
    const jobs = await eachJob(ended, fetchOne);
    const context = { ledger, journal, reader, heartbeat };
    for (const { attempt, row } of known) await keepRefused(attempt, row, context);
    await journal.flush();
    // A seal per attempt that brought nothing to its end would only cost space.
    if (jobs.values.length === 0) return throwWaits(jobs);
    if (lease.terminal) return;
    if (lease.lost) throw retryLater('another attempt has this part', 1_000);
    await seal(journal, heartbeat, deps);
    for (const job of jobs.values) await note(job, ledger, deps);
    throwWaits(jobs);
  } finally {
    await journal.close().finally(() => reader.close());
  }
}

function seal(
  journal: PartJournal,
  { signal }: Heartbeat,
  { logger }: DelegateDeps,
): Promise<void> {
  const onFailure = () => undefined;
  return retryStep(() => journal.seal(), { signal, logger, what: 'sealing', onFailure });
}

/** The answers of the job are sealed. */
async function note(
  { row, taker, isComplete }: FetchedJob,
  ledger: PartLedger,
  { jobs, config }: DelegateDeps,
): Promise<void> {
  const usage = taker.usage();
  const costUsd = costOf(usage, config.delegates[row.model]?.price);
  const counts = ledger.countsIn(row);
  const found = { outcome: outcomeOf(row, counts), costUsd, usage };
  if (isComplete) await jobs.recordCollected(row.id, found);
  else await jobs.abandon(row.id);
  taker.report(costUsd, counts.open);
}

/** A finished job that lacks lines, or has failed ones, is only partly complete. */
function outcomeOf(row: JobRow, { open, failed }: { open: number; failed: number }): JobOutcome {
  const outcome = row.outcome ?? 'failed';
  return outcome === 'completed' && open + failed > 0 ? 'partial_complete' : outcome;
}

function resultOf(
  ledger: PartLedger,
  lease: ChunkLease,
  taken: CollectJobInput['taken'] = [ledger],
): CollectedJob {
  return {
    next: ledger.next,
    ...ledger.countsBeforeNext(taken),
    unanswered: ledger.unanswered,
    // A batch that has ended without a cause was ended by another hand: its workflow has nothing left to do.
    stopCause: lease.stopCause ?? (lease.terminal ? 'failed' : null),
  };
}
