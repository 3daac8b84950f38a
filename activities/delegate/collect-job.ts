import { Context } from '@temporalio/activity';
import type { JobOutcome } from '../../core/delegation/job-steps';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { retryStep } from '../execute/retry-step';
import type { Heartbeat } from '../runtime/heartbeat';
import { withHeartbeat } from '../runtime/with-heartbeat';
import type { CollectedJob, JobInput } from './contract';
import type { DelegateDeps } from './deps';
import { costOf } from './cost';
import type { JobAttempt } from './job-attempt';
import type { FetchNote } from './fetch-results';
import { fetchResults } from './fetch-results';
import { attemptAt, rowOf } from './job-attempt';
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
export function createCollectJob(deps: DelegateDeps): (input: JobInput) => Promise<CollectedJob> {
  return (input) =>
    collectOnce(input, deps, {
      ...(Context.current().info.heartbeatDetails as FetchNote | undefined),
    });
}

function collectOnce(input: JobInput, deps: DelegateDeps, note: FetchNote): Promise<CollectedJob> {
  const work = async (heartbeat: Heartbeat): Promise<CollectedJob> =>
    collect(await attemptAt(input, deps), { heartbeat, note });
  return withHeartbeat(work, { details: () => note, beatsOnFailure: true });
}

interface CollectAttempt {
  readonly heartbeat: Heartbeat;
  readonly note: FetchNote;
}

async function collect(
  attempt: JobAttempt,
  { heartbeat, note }: CollectAttempt,
): Promise<CollectedJob> {
  const { deps, input } = attempt;
  const { batchId, safe, job } = input;
  const row = await rowOf(attempt);
  const key = { batchId, safeModel: safe, from: job.from, to: job.to };
  const lease = await deps.progress.begin(key, heartbeat.signal);
  let ledger: PartLedger | null = null;
  try {
    ledger = await openPart(deps, input);
    lease.trackCounts(ledger);
    if (row.step === 'ended') await harvest(attempt, row, { ledger, lease, heartbeat, note });
    return resultOf(ledger, lease);
  } finally {
    const counts = ledger?.countsBeforeNext() ?? { completed: 0, failed: 0 };
    await lease.release({ to: ledger?.next ?? job.from, ...counts });
  }
}

interface Harvest extends CollectAttempt {
  readonly ledger: PartLedger;
  readonly lease: ChunkLease;
}

/** Reads the results from the provider. They are sealed before the row says that they are collected. */
async function harvest(
  attempt: JobAttempt,
  row: JobRow,
  { ledger, lease, heartbeat, note }: Harvest,
): Promise<void> {
  const { deps, input } = attempt;
  const { signal } = heartbeat;
  const reader = await deps.store.open(input.inputKey);
  const journal = new PartJournal(deps.journal, input, ledger);
  const taker = new ResultTaker({ attempt, row, ledger, journal, reader });
  try {
    const isComplete = await fetchResults(attempt, row, { taker, heartbeat, note });
    await journal.flush();
    if (lease.lost) throw retryLater('another attempt has this part', 1_000);
    const onFailure = () => undefined;
    const retrying = { signal, logger: deps.logger, what: 'sealing', onFailure };
    await retryStep(() => journal.seal(), retrying);
    const costUsd = costOf(row.usage, deps.config.delegates[row.model]?.price);
    if (isComplete) {
      await deps.jobs.recordCollected(row.id, { outcome: outcomeOf(row, ledger), costUsd });
    } else await deps.jobs.abandon(row.id);
    taker.report(costUsd);
  } finally {
    await journal.close().finally(() => reader.close());
  }
}

/** A finished job that lacks lines, or has failed ones, is only partly complete. */
function outcomeOf(row: JobRow, { open, failed }: PartLedger): JobOutcome {
  const outcome = row.outcome ?? 'failed';
  return outcome === 'completed' && open + failed > 0 ? 'partial_complete' : outcome;
}

function resultOf(ledger: PartLedger, lease: ChunkLease): CollectedJob {
  return {
    next: ledger.next,
    ...ledger.countsBeforeNext(),
    unanswered: ledger.open,
    stopCause: lease.stopCause,
  };
}
