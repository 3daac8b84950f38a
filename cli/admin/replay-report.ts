import type { ReplayVerdict } from '../../workers/replay-open';
import { grouped, say } from '../output';

/** Exit status if a workflow diverges; 1 is for a check that could not be made. */
const DIVERGES = 2;

const SAY_EVERY_MS = 5_000;

/** Prints each verdict and a summary, and sets the exit status. `running` is what visibility counts. */
export async function reportVerdicts(
  verdicts: AsyncIterable<ReplayVerdict>,
  { running, limit = running }: { readonly running: number; readonly limit: number | undefined },
): Promise<void> {
  summarize(await printAll(verdicts, Math.min(running, limit)), running);
}

type Tally = Record<ReplayVerdict['verdict'], number>;

async function printAll(verdicts: AsyncIterable<ReplayVerdict>, expected: number): Promise<Tally> {
  const tally: Tally = { replays: 0, diverges: 0, gone: 0 };
  let saidMs = performance.now();
  for await (const verdict of verdicts) {
    tally[verdict.verdict]++;
    process.stdout.write(`${lineOf(verdict)}\n`);
    if (performance.now() - saidMs < SAY_EVERY_MS) continue;
    saidMs = performance.now();
    const done = tally.replays + tally.diverges + tally.gone;
    say(`${grouped(done)} of about ${grouped(expected)} workflows`);
  }
  return tally;
}

function lineOf({ verdict, workflowId, events, divergingEvent, message }: ReplayVerdict): string {
  const line = `${verdict.padEnd(8)}  ${workflowId}  ${grouped(events)} events`;
  if (verdict !== 'diverges') return line;
  const at =
    divergingEvent === null ? '' : `  at event ${divergingEvent.id} ${divergingEvent.type}`;
  return `${line}${at}: ${message ?? ''}`;
}

function summarize({ replays, diverges, gone }: Tally, running: number): void {
  const checked = replays + diverges + gone;
  const rest = running > checked ? `; ${grouped(running - checked)} were not checked` : '';
  const counts = `${grouped(replays)} replay, ${grouped(diverges)} diverge`;
  say(`${grouped(checked)} open workflows: ${counts}${gone > 0 ? `, ${gone} ended` : ''}${rest}`);
  if (diverges === 0) return;
  say(
    'do not deploy this release: the workflows that diverge would stand still until you roll back',
  );
  process.exitCode = DIVERGES;
}
