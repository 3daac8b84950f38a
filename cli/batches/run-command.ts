import type { Batch } from 'openai/resources/batches';
import type { ClientIo } from './client-io';
import type { ConnectionFlags } from './connection-flags';
import { deliverResults, resultsCommand } from './deliver-results';
import { EXIT, type ExitCode } from './exit-codes';
import { openInput } from './input-file';
import {
  checkTargets,
  chosenTargets,
  refuseMixedStdout,
  targetsBeside,
  type ResultFlags,
  type ResultTargets,
} from './result-targets';
import { withSession, type Session } from './session';
import { submitBatch, type SubmitFlags } from './submit-batch';
import { watchBatch } from './watch-batch';

/** Flags of `nightshift run`. */
export interface RunFlags extends ConnectionFlags, SubmitFlags, ResultFlags {
  /** How long the server may be away, ms. */
  readonly patience: number;
}

/** `nightshift run FILE`: uploads, creates the batch, watches it, downloads its results, prints a summary. */
export async function runRun(io: ClientIo, input: string, flags: RunFlags): Promise<void> {
  await withSession(io, flags, async (session) => {
    const startedAtMs = performance.now();
    openInput(input);
    const targets = { ...targetsBeside(input), ...chosenTargets(flags) };
    refuseMixedStdout(targets, flags);
    checkTargets(targets, { force: flags.force === true, input });
    const created = await submitBatch(input, flags, session);
    session.reporter.say(`created ${created.id} (${created.endpoint})`);
    const { batch, isDetached } = await watchBatch(created, {
      ...session,
      patienceMs: flags.patience,
    }).catch((error: unknown) => {
      suggestCommands(created, targets, session);
      throw error;
    });
    if (isDetached) return detach(batch, targets, session);
    return deliverResults(batch, { session, flags, targets, startedAtMs });
  });
}

function detach(batch: Batch, targets: ResultTargets, session: Session): ExitCode {
  session.reporter.say(`${batch.id} continues on the server`);
  suggestCommands(batch, targets, session);
  return EXIT.interrupted;
}

function suggestCommands(batch: Batch, targets: ResultTargets, session: Session): void {
  const { reporter, service } = session;
  reporter.say(`to watch it:          nightshift watch ${batch.id}${service.followUpFlags}`);
  reporter.say(`to fetch its results: ${resultsCommand(batch, targets, session)}`);
}
