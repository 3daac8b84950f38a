import type { CallOptions, JobStatus, LineResult } from '../../providers/provider';
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
  /** How often results were read that look cut off. */
  malformedReads?: number;
}

/**
 * How often results that look cut off are read in all: they end in a malformed line, or have fewer answers than the
 * provider counts. What they lack would be submitted, and paid, again.
 */
const CUT_READS = 3;
/** Time until results that look cut off are read again, ms. */
const CUT_PAUSE_MS = 5_000;

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
  let completed = 0;
  const take = async (result: LineResult) => {
    heartbeat.check();
    if (result.kind === 'answer' && result.status < 400) completed++;
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
  const { malformed } = results.value;
  readAgainIfCut(attempt, { malformed, missing: missingOf(status.value, completed) }, note);
  for (const error of await lineErrorsOf(deps.store, row, status.value.lineErrors)) {
    await taker.refuse(error);
  }
  return true;
}

/** How many answers the provider counts beyond those that were read; a file may end early between two lines. */
function missingOf({ counts }: JobStatus, completed: number): number {
  return counts === null ? 0 : Math.max(0, counts.completed - completed);
}

/** @throws a failure that is retried, as long as another read may bring more */
function readAgainIfCut(
  { provider, input }: JobAttempt,
  { malformed, missing }: { readonly malformed: number; readonly missing: number },
  note: FetchNote,
): void {
  if (malformed + missing === 0 || Date.now() >= input.giveUpAtMs + input.harvestGraceMs) return;
  note.malformedReads = (note.malformedReads ?? 0) + 1;
  if (note.malformedReads >= CUT_READS) return;
  const message = `${provider.name}: ${malformed} malformed and ${missing} missing results`;
  throw retryLater(message, CUT_PAUSE_MS);
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
