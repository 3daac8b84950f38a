import type { Command } from 'commander';
import { isNightshiftError } from '../../core/errors';
import { EXIT, exitCodeOfError, type ExitCode } from '../batches/exit-codes';
import { listenForInterrupts, type Interrupts } from '../batches/interrupts';
import { paintFor } from '../batches/paint';
import { examples } from '../help';
import { processFlowIo, type FlowIo } from './flow-io';
import { flowLines, SORTS } from './flow-text';
import { readFlow } from './read-flow';
import { DEFAULT_OBSERVABILITY_URL } from './read-page';
import { watchFlow } from './watch-flow';

/** Flags of `nightshift flow`. */
interface FlowFlags {
  readonly url: string;
  readonly once?: boolean;
  readonly json?: boolean;
}

/** Adds `nightshift flow`, which shows what the gateway does. */
export function addFlowCommand(program: Command, makeIo: () => FlowIo = processFlowIo): void {
  program
    .command('flow')
    .description("show the gateway's pools, tenants and model servers, refreshed every second")
    .option(
      '--url <url>',
      "base URL of the gateway's observability port",
      DEFAULT_OBSERVABILITY_URL,
    )
    .option('--once', 'print the present state and exit; also without a terminal')
    .option('--json', 'print the present state as one JSON document and exit')
    .addHelpText('after', FLOW_HELP)
    .addHelpText(
      'after',
      examples([
        'nightshift flow',
        'nightshift flow --url http://gateway:9091 --once',
        "nightshift flow --json | jq '.pools[].saturation'",
      ]),
    )
    .action((flags: FlowFlags) => runFlow(makeIo(), flags));
}

const FLOW_HELP = `
Keys: q quits, s sorts tenants by ${SORTS.join(', ')}; p shows one pool after the other.
If the gateway goes away, its last state stays on the screen until it answers again.

Exit status:
    0  done
    1  wrong usage, or the server is no gateway
    6  no gateway answers
  130  interrupted by Ctrl-C`;

/** Shows the flow and sets the exit status. Errors are reported in one sentence. */
async function runFlow(io: FlowIo, flags: FlowFlags): Promise<void> {
  const interrupts = listenForInterrupts(io.signals);
  try {
    io.exitWith(await show(io, flags, interrupts));
  } catch (error) {
    const isInterrupted = interrupts.pending !== null;
    const text = isNightshiftError(error) ? error.message : String(error);
    io.stderr.write(`nightshift: ${isInterrupted ? 'interrupted' : text}\n`);
    io.exitWith(isInterrupted ? EXIT.interrupted : exitCodeOfError(error));
  } finally {
    interrupts.close();
  }
}

async function show(io: FlowIo, flags: FlowFlags, interrupts: Interrupts): Promise<ExitCode> {
  const { stdout, env } = io;
  const isTerminal = stdout.isTTY === true && env['TERM'] !== 'dumb';
  const isOnce = flags.once === true || flags.json === true || !isTerminal;
  if (!isOnce) return watchFlow(flags.url, io, interrupts);
  const page = await readFlow(flags.url, interrupts.signal);
  const width = isTerminal ? (stdout.columns ?? Infinity) : Infinity;
  const style = { width, paint: paintFor(stdout, env) };
  const text =
    flags.json === true
      ? JSON.stringify(page, null, 2)
      : flowLines({ ...style, page, before: null, sort: SORTS[0] }).join('\n');
  stdout.write(`${text}\n`);
  return EXIT.completed;
}
