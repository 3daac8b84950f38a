import type { Batch } from 'openai/resources/batches';
import { NightshiftError } from '../../core/errors';
import type { ClientIo } from './client-io';
import { shellWord, type ConnectionFlags } from './connection-flags';
import { endSummary } from './end-summary';
import { EXIT, exitCodeOf, type ExitCode } from './exit-codes';
import { fetchResults } from './fetch-results';
import { openInput } from './input-file';
import { checkTargets, STDOUT, targetsBeside, type ResultTargets } from './result-targets';
import { withSession, type Session } from './session';
import { submitBatch, type SubmitFlags } from './submit-batch';
import { watchBatch } from './watch-batch';

/** Where results go. */
export interface ResultFlags {
  readonly output?: string;
  readonly errors?: string;
  readonly force?: boolean;
}

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
    return deliver(batch, { session, flags, targets, startedAtMs });
  });
}

/** Where the results of a batch go, and what is said about it. */
export interface Delivery {
  readonly session: Session;
  readonly flags: ResultFlags & ConnectionFlags;
  readonly targets: ResultTargets;
  /** When the whole began, where this process saw it. */
  readonly startedAtMs: number | null;
}

/** Downloads the results of an ended batch and sums up. */
export async function deliver(batch: Batch, delivery: Delivery): Promise<ExitCode> {
  const { session, flags, targets, startedAtMs } = delivery;
  const force = flags.force === true;
  const results = await fetchResults(batch, { ...session, targets, force }).catch(
    (error: unknown) => {
      const again = resultsCommand(batch, targets, session);
      session.reporter.say(`the results stay on the server, to fetch them again: ${again}`);
      throw error;
    },
  );
  const elapsedMs = startedAtMs === null ? null : performance.now() - startedAtMs;
  const { paint, print, reporter } = session;
  if (usesStdout(targets)) {
    const text = endSummary(batch, { paint: reporter.paint, results, elapsedMs });
    session.io.stderr.write(`${text}\n`);
  } else {
    print(
      { batch, ...results, elapsed_seconds: elapsedMs === null ? null : elapsedMs / 1_000 },
      () => endSummary(batch, { paint, results, elapsedMs }),
    );
  }
  return exitCodeOf(batch);
}

/** The targets that were named. */
export function chosenTargets({ output, errors }: ResultFlags): Partial<ResultTargets> {
  return {
    ...(output === undefined ? {} : { output }),
    ...(errors === undefined ? {} : { errors }),
  };
}

/** @throws invalid_request where a JSON document and results would mix on stdout */
export function refuseMixedStdout(targets: ResultTargets, { json }: ConnectionFlags): void {
  if (json !== true || !usesStdout(targets)) return;
  const message = '--json and results on stdout (-) would mix: leave one of them out';
  throw new NightshiftError('invalid_request', message);
}

function usesStdout({ output, errors }: ResultTargets): boolean {
  return output === STDOUT || errors === STDOUT;
}

function detach(batch: Batch, targets: ResultTargets, session: Session): ExitCode {
  session.reporter.say(`${batch.id} continues on the server`);
  suggestCommands(batch, targets, session);
  return EXIT.interrupted;
}

function suggestCommands(batch: Batch, targets: ResultTargets, session: Session): void {
  const { reporter, service } = session;
  reporter.say(`to watch it:          nightshift watch ${batch.id}${service.repeated}`);
  reporter.say(`to fetch its results: ${resultsCommand(batch, targets, session)}`);
}

function resultsCommand(batch: Batch, targets: ResultTargets, { service }: Session): string {
  const files = `-o ${shellWord(targets.output)} --errors ${shellWord(targets.errors)}`;
  return `nightshift results ${batch.id} ${files}${service.repeated}`;
}
