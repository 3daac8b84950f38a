import { isNightshiftError } from '../../core/errors';
import type { ClientIo } from '../batches/client-io';
import { EXIT, exitCodeOfError, type ExitCode } from '../batches/exit-codes';
import { listenForInterrupts } from '../batches/interrupts';

/** Runs a command and sets the exit status. Errors are reported in one sentence; an interrupt ends it with 130. */
export async function runAudio(
  io: Pick<ClientIo, 'signals' | 'stderr' | 'exitWith'>,
  work: (signal: AbortSignal) => Promise<ExitCode>,
): Promise<void> {
  const interrupts = listenForInterrupts(io.signals);
  try {
    io.exitWith(await work(interrupts.signal));
  } catch (error) {
    const isInterrupted = interrupts.pending !== null;
    const text = isNightshiftError(error) ? error.message : String(error);
    io.stderr.write(`nightshift: ${isInterrupted ? 'interrupted' : text}\n`);
    io.exitWith(isInterrupted ? EXIT.interrupted : exitCodeOfError(error));
  } finally {
    interrupts.close();
  }
}
