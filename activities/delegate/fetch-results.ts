import type { CallOptions, LineResult, ResultTotals } from '../../providers/provider';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { Heartbeat } from '../runtime/heartbeat';
import { GONE_MS, GONE_POLL_MS } from './gone';
import type { FailedResult, JobAttempt } from './job-attempt';
import { observedCall, reportFailure } from './job-attempt';
import { lineErrorsOf } from './line-errors';
import { makeRoomFor } from './make-room';
import type { ProviderCall } from './observer';
import type { ResultTaker } from './result-taker';
import { notBeyond, retryLater } from './retry-later';

/** What an attempt passes on to the next one, in its heartbeat. */
export interface FetchNote {
  /** Since when the provider does not know the job or its results, Unix ms. */
  goneSinceMs?: number;
  /** How often results with malformed lines were read. */
  malformedReads?: number;
}

/**
 * How often results with malformed lines are read in all. A file that was cut off ends in such a line. What it lacks
 * would be submitted, and paid, again.
 */
const MALFORMED_READS = 3;
/** Time until results with malformed lines are read again, ms. */
const MALFORMED_PAUSE_MS = 5_000;

/** What {@link fetchResults} works with. */
export interface FetchContext {
  readonly taker: ResultTaker;
  readonly heartbeat: Heartbeat;
  readonly note: FetchNote;
}

/**
 * Reads the results of an ended job from its provider. False if they cannot be had any more: the provider has
 * not known them for 15 minutes, or the batch no longer waits (docs/design/delegation.md#collecting).
 * @throws a failure that is retried after a pause
 */
export async function fetchResults(
  attempt: JobAttempt,
  row: JobRow,
  { taker, heartbeat, note }: FetchContext,
): Promise<boolean> {
  const { deps, provider } = attempt;
  const { externalId } = row;
  if (externalId === null || row.error?.reason === 'gone') return true;
  const { signal } = heartbeat;
  const ask = (options: CallOptions) => provider.api.status(externalId, options);
  const status = await observedCall(attempt, 'status', ask, signal);
  if (status.outcome !== 'ok') return giveUp(attempt, { what: 'status', failed: status, note });
  const makeRoom = makeRoomFor(deps);
  const take = async (result: LineResult) => {
    heartbeat.check();
    await taker.take(result);
    await makeRoom(result.kind === 'answer' ? result.body.length : 0, signal);
  };
  const answers = {
    endpoint: attempt.input.endpoint,
    model: row.model,
    createdSec: Math.floor((row.submittedAtMs ?? row.createdAtMs) / 1000),
  };
  const read = (options: CallOptions) =>
    provider.api.results(status.value, take, { ...options, ...answers });
  const results = await observedCall(attempt, 'results', read, signal);
  if (results.outcome !== 'ok') return giveUp(attempt, { what: 'results', failed: results, note });
  readAgainIfMalformed(attempt, results.value, note);
  for (const error of await lineErrorsOf(deps.store, row, status.value.lineErrors)) {
    await taker.refuse(error);
  }
  return true;
}

/** @throws a failure that is retried, as long as another read may bring more */
function readAgainIfMalformed(
  { provider, input }: JobAttempt,
  { malformed }: ResultTotals,
  note: FetchNote,
): void {
  if (malformed === 0 || Date.now() >= input.giveUpAtMs + input.harvestGraceMs) return;
  note.malformedReads = (note.malformedReads ?? 0) + 1;
  if (note.malformedReads >= MALFORMED_READS) return;
  throw retryLater(`${provider.name}: ${malformed} malformed results`, MALFORMED_PAUSE_MS);
}

/** False once it is time to give up. @throws a failure that is retried until then */
function giveUp(
  attempt: JobAttempt,
  { what, failed, note }: { what: ProviderCall; failed: FailedResult; note: FetchNote },
): false {
  const { giveUpAtMs, harvestGraceMs } = attempt.input;
  const { message, pauseMs } = reportFailure(attempt, what, failed);
  const nowMs = Date.now();
  const isGone = failed.outcome === 'gone';
  if (isGone) note.goneSinceMs ??= nowMs;
  else delete note.goneSinceMs;
  const untilMs = Math.min(
    giveUpAtMs + harvestGraceMs,
    note.goneSinceMs === undefined ? Infinity : note.goneSinceMs + GONE_MS,
  );
  if (nowMs >= untilMs) return false;
  throw retryLater(message, notBeyond(isGone ? GONE_POLL_MS : pauseMs, untilMs, nowMs));
}
