import { NightshiftError } from '../../core/errors';
import type { ClientIo } from './client-io';
import type { ConnectionFlags } from './connection-flags';
import { deliverResults } from './deliver-results';
import { describeBatch } from './describe-batch';
import { endSummary } from './end-summary';
import { EXIT, exitCodeOf, hasEnded } from './exit-codes';
import { jobsIfAny } from './job-commands';
import { batchTable } from './list-batches';
import {
  checkTargets,
  chosenTargets,
  refuseMixedStdout,
  targetsOf,
  type ResultFlags,
} from './result-targets';
import { withSession } from './session';
import { submitBatch, type SubmitFlags } from './submit-batch';
import { watchBatch } from './watch-batch';

/** How often the SDK repeats a request while a person waits for one answer. */
const RETRIES = 2;

/** `nightshift submit FILE`: uploads, creates the batch, prints its id. */
export async function runSubmit(
  io: ClientIo,
  input: string,
  flags: ConnectionFlags & SubmitFlags,
): Promise<void> {
  await withSession(io, flags, async (session) => {
    const batch = await submitBatch(input, flags, session);
    session.print(batch, () => batch.id);
    const { reporter, service } = session;
    reporter.say(`to watch it: nightshift watch ${batch.id}${service.followUpFlags}`);
    return EXIT.completed;
  });
}

/** `nightshift list`: the newest batches. */
export async function runList(
  io: ClientIo,
  flags: ConnectionFlags & { readonly limit: number },
): Promise<void> {
  await withSession(io, flags, async ({ service, interrupts, reporter, paint, print }) => {
    const { batches, hasMore } = await service.list(flags.limit, interrupts.signal);
    print(batches, () =>
      batches.length === 0 ? 'no batches yet' : batchTable(batches, paint, Date.now()),
    );
    if (hasMore) reporter.say(`there are more: add --limit ${flags.limit * 5} to see them`);
    return EXIT.completed;
  });
}

/** `nightshift show ID`: everything the server reports about a batch. */
export async function runShow(io: ClientIo, id: string, flags: ConnectionFlags): Promise<void> {
  await withSession(io, flags, async (session) => {
    const { service, interrupts, paint, print } = session;
    const batch = await service.retrieve(id, { signal: interrupts.signal, retries: RETRIES });
    const jobs = flags.json === true ? [] : await jobsIfAny(session, batch);
    print(batch, () => describeBatch(batch, { paint, nowMs: Date.now(), jobs }));
    return EXIT.completed;
  });
}

/** `nightshift watch ID`: progress until the batch has ended. */
export async function runWatch(
  io: ClientIo,
  id: string,
  flags: ConnectionFlags & { readonly patience: number },
): Promise<void> {
  await withSession(io, flags, async (session) => {
    const { service, interrupts, reporter, paint, print } = session;
    const first = await service.retrieve(id, { signal: interrupts.signal, retries: RETRIES });
    const end = await watchBatch(first, { ...session, patienceMs: flags.patience });
    if (end.isDetached) {
      reporter.say(`${id} continues; to watch it: nightshift watch ${id}${service.followUpFlags}`);
      return EXIT.interrupted;
    }
    print(end.batch, () => endSummary(end.batch, { paint, results: null, elapsedMs: null }));
    if (end.batch.output_file_id || end.batch.error_file_id) {
      reporter.say(`to fetch its results: nightshift results ${id}${service.followUpFlags}`);
    }
    return exitCodeOf(end.batch);
  });
}

/** `nightshift cancel ID`: cancels the batch; finished answers are kept. */
export async function runCancel(io: ClientIo, id: string, flags: ConnectionFlags): Promise<void> {
  await withSession(io, flags, async ({ service, reporter, print }) => {
    const batch = await service.cancel(id);
    print(batch, () => `${batch.id} is ${batch.status}`);
    if (!hasEnded(batch)) {
      const watch = `nightshift watch ${id}${service.followUpFlags}`;
      reporter.say(`finished answers are kept; to see it end: ${watch}`);
    }
    return EXIT.completed;
  });
}

/** `nightshift results ID`: the files of an ended batch. */
export async function runResults(
  io: ClientIo,
  id: string,
  flags: ConnectionFlags & ResultFlags,
): Promise<void> {
  await withSession(io, flags, async (session) => {
    const { service, interrupts } = session;
    const targets = { ...targetsOf(id), ...chosenTargets(flags) };
    refuseMixedStdout(targets, flags);
    checkTargets(targets, { force: flags.force === true, input: null });
    const batch = await service.retrieve(id, { signal: interrupts.signal, retries: RETRIES });
    if (!hasEnded(batch)) {
      const message = `${id} is ${batch.status} and has no results yet: wait for its end with nightshift watch ${id}${service.followUpFlags}`;
      throw new NightshiftError('conflict', message);
    }
    return deliverResults(batch, { session, flags, targets, startedAtMs: null });
  });
}
