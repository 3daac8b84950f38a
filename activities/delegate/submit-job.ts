import { Context } from '@temporalio/activity';
import type { StopCause } from '../../core/batch/status';
import { CREATABLE_STEPS, isSettled } from '../../core/delegation/job-steps';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { Heartbeat } from '../runtime/heartbeat';
import { withHeartbeat } from '../runtime/with-heartbeat';
import { awaitInput } from './await-input';
import { awaitProof } from './await-proof';
import type { JobInput, SubmittedJob } from './contract';
import { createJob } from './create-job';
import type { DelegateDeps } from './deps';
import { eachJob, jobsOf, throwWaits } from './each-job';
import type { JobAttempt } from './job-attempt';
import { attemptAt, rowOf } from './job-attempt';
import { JobNotes } from './job-notes';
import { awaitTurn } from './repeated-job';
import { notBeyond, retryLater } from './retry-later';
import { stageJob } from './stage-job';
import { uploadJob } from './upload-job';
import type { WatchNote } from './watch-job';
import { lookAt } from './watch-job';

const NO_ROW_PAUSE_MS = 5_000;

/**
 * The activity that takes the jobs of a part from their rows to the provider's acceptance. Each step is in the row
 * before the next one begins, so an attempt goes on where the last one ended (docs/design/delegation.md#activities).
 */
export function createSubmitJob(deps: DelegateDeps): (input: JobInput) => Promise<SubmittedJob> {
  return async (input) => {
    const notes = new JobNotes<WatchNote>(input);
    const run = async (heartbeat: Heartbeat): Promise<SubmittedJob> => {
      const submitted: JobInput[] = [];
      const ends = await eachJob(jobsOf(input), async (one) => {
        const end = await submit(await attemptAt(one, deps), heartbeat);
        if (end.kind === 'submitted') submitted.push(one);
        return end;
      });
      // Jobs that run may hold the quota that the others wait for, and only a look notices their end.
      const look = (one: JobInput) =>
        lookAt(one, deps, { note: notes.of(one), isOneOfMany: true, signal: heartbeat.signal });
      if (ends.waits.length > 0) await eachJob(submitted, look);
      throwWaits(ends);
      return ofPart(input, ends.values);
    };
    return withHeartbeat(run, { details: () => notes.details, beatsOnFailure: true });
  };
}

/** What became of a part. If any of its jobs was submitted, the part has to be watched. */
function ofPart({ job }: JobInput, ends: readonly SubmittedJob[]): SubmittedJob {
  const [first = null] = ends;
  if (first !== null && job.jobs === undefined) return first;
  const has = (kind: SubmittedJob['kind']) => ends.some((end) => end.kind === kind);
  const kind = (['submitted', 'stopped', 'late', 'refused'] as const).find(has) ?? 'empty';
  const stopCause = ends.find((end) => end.stopCause !== null)?.stopCause ?? null;
  // What staging has cut from the end of a job is open when the part has returned.
  return { kind, to: job.to, stopCause };
}

async function submit(attempt: JobAttempt, heartbeat: Heartbeat): Promise<SubmittedJob> {
  const { deps, input } = attempt;
  let row = await rowOf(attempt);
  if (isTooLate(attempt, row)) return giveUp(attempt, row);
  if (row.step === 'staging') {
    await awaitTurn(attempt, row);
    row = await deps.parts.run(() => stageJob(attempt, heartbeat));
  }
  if (row.lines === 0 && isUnsent(row)) {
    const message = 'no line of the part was to be sent';
    await deps.jobs.refuse(row.id, { code: null, message, reason: 'empty' });
    return outcome('empty', row);
  }
  if (row.step === 'staged' && attempt.provider.api.capabilities.input === 'uploaded') {
    row = await uploadJob(attempt, row, heartbeat.signal);
  }
  if (!isCreatable(row)) return known(row);
  if (row.step === 'uploaded' && isUnsent(row)) await awaitInput(attempt, row, heartbeat.signal);
  if (isTooLate(attempt, row)) return giveUp(attempt, row);
  row = await awaitProof(attempt, row, heartbeat.signal);
  if (!isCreatable(row)) return known(row);
  const created = await createJob(attempt, row, Context.current().cancellationSignal);
  if (created.kind === 'stopped') return stopped(row, created.cause);
  if (created.kind === 'no_row') throw retryLater('the row of the job is gone', NO_ROW_PAUSE_MS);
  if (created.kind === 'retry') throw waiting(attempt, created);
  return known((await deps.jobs.find(input.job.jobId)) ?? row);
}

/** The job waits: for capacity, for the end of an uncertain create, or for an operator. */
function waiting(
  { provider, input }: JobAttempt,
  { reason, afterMs }: { readonly reason: string; readonly afterMs: number },
): Error {
  const message = `${provider.name}: the job waits to be created (${reason})`;
  return retryLater(message, notBeyond(afterMs, input.giveUpAtMs, Date.now()));
}

function stopped(row: JobRow, cause: StopCause | 'ended'): SubmittedJob {
  return { ...outcome('stopped', row), stopCause: cause === 'ended' ? null : cause };
}

/** Nothing of the job can be at the provider. */
function isUnsent({ step, firstCreateAtMs }: JobRow): boolean {
  return firstCreateAtMs === null && ['staging', 'staged', 'uploaded'].includes(step);
}

/** Whether the job has no id yet, and the batch no longer waits for its provider. */
function isTooLate({ input }: JobAttempt, row: JobRow): boolean {
  return Date.now() >= input.giveUpAtMs && (isUnsent(row) || isCreatable(row));
}

/** Nothing is created any more. A job that an earlier attempt may have created goes to the watch, which looks it up. */
async function giveUp({ deps }: JobAttempt, row: JobRow): Promise<SubmittedJob> {
  if (!isUnsent(row)) return outcome('submitted', row);
  await deps.jobs.abandon(row.id);
  return outcome('late', row);
}

function isCreatable({ step }: JobRow): boolean {
  return (CREATABLE_STEPS as readonly string[]).includes(step);
}

function known(row: JobRow): SubmittedJob {
  if (row.error?.reason === 'empty') return outcome('empty', row);
  if (row.step === 'refused') return outcome('refused', row);
  return outcome(isSettled(row.step) ? 'late' : 'submitted', row);
}

function outcome(kind: SubmittedJob['kind'], { to }: JobRow): SubmittedJob {
  return { kind, to, stopCause: null };
}
