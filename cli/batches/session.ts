import { isNightshiftError } from '../../core/errors';
import { createBatchService, type BatchService } from './batch-service';
import type { ClientIo } from './client-io';
import { connectionOf, type ConnectionFlags } from './connection-flags';
import { EXIT, exitCodeOfError, type ExitCode } from './exit-codes';
import { listenForInterrupts, type Interrupts } from './interrupts';
import { paintFor, type Paint } from './paint';
import { createReporter, type Reporter } from './reporter';

/** What a batch command works with. */
export interface Session {
  readonly io: ClientIo;
  readonly service: BatchService;
  readonly reporter: Reporter;
  readonly interrupts: Interrupts;
  /** Colors of stdout. */
  readonly paint: Paint;
  /** Writes a result to stdout: `document` as JSON with `--json`, otherwise the text. */
  print(document: unknown, text: () => string): void;
}

/**
 * Runs a command with a session and sets the exit status. Errors are reported in one sentence. An interrupt
 * that the command did not handle ends it with 130.
 */
export async function withSession(
  io: ClientIo,
  flags: ConnectionFlags,
  work: (session: Session) => Promise<ExitCode>,
): Promise<void> {
  const reporter = createReporter(io.stderr, io.env);
  const interrupts = listenForInterrupts(io.signals);
  try {
    const service = createBatchService(connectionOf(flags, io.env));
    const paint = paintFor(io.stdout, io.env);
    const print = (document: unknown, text: () => string): void => {
      const output = flags.json === true ? JSON.stringify(document, null, 2) : text();
      io.stdout.write(`${output}\n`);
    };
    io.exitWith(await work({ io, service, reporter, interrupts, paint, print }));
  } catch (error) {
    const isInterrupted = interrupts.pending !== null;
    reporter.say(isInterrupted ? 'interrupted' : messageOf(error));
    io.exitWith(isInterrupted ? EXIT.interrupted : exitCodeOfError(error));
  } finally {
    interrupts.close();
    reporter.clear();
  }
}

function messageOf(error: unknown): string {
  if (isNightshiftError(error) && error.code !== 'internal') return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
