import type { Batch } from 'openai/resources/batches';
import { shellWord, type ConnectionFlags } from './connection-flags';
import { endSummary } from './end-summary';
import { exitCodeOf, type ExitCode } from './exit-codes';
import { fetchResults } from './fetch-results';
import { usesStdout, type ResultFlags, type ResultTargets } from './result-targets';
import type { Session } from './session';

/** How the results of a batch are delivered. */
export interface Delivery {
  readonly session: Session;
  readonly flags: ResultFlags & ConnectionFlags;
  readonly targets: ResultTargets;
  /** When the upload began; `null` if this process did not upload the input. */
  readonly startedAtMs: number | null;
}

/** Downloads the results of an ended batch, prints a summary, and returns the exit status. */
export async function deliverResults(batch: Batch, delivery: Delivery): Promise<ExitCode> {
  const { session, flags, targets, startedAtMs } = delivery;
  const force = flags.force === true;
  const results = await fetchResults(batch, { ...session, targets, force }).catch(
    (error: unknown) => {
      const again = resultsCommand(batch, targets, session);
      session.reporter.say(`the results stay on the server; to fetch them again: ${again}`);
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

/** The command line that fetches the results of a batch later. */
export function resultsCommand(batch: Batch, targets: ResultTargets, { service }: Session): string {
  const { output, errors, audio } = targets;
  const files = `-o ${shellWord(output)} --errors ${shellWord(errors)}`;
  const unpacked = audio === null ? '' : ` --audio ${shellWord(audio)}`;
  return `nightshift results ${batch.id} ${files}${unpacked}${service.followUpFlags}`;
}
