import { spawn } from 'node:child_process';
import { NightshiftError } from '../../core/errors';
import { openComponentLog, withLastLines } from './component-log';

/** A program that runs once and ends by itself, such as `nightshift migrate`. */
export interface OneShot {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logPath: string;
  /** Kills the program. */
  readonly signal: AbortSignal;
}

const SHOWN_LINES = 15;

/** Runs the program with its output in a log file. @throws internal with the log's last lines */
export async function runOneShot(step: OneShot): Promise<void> {
  const log = openComponentLog(step.logPath, () => undefined);
  try {
    const failure = await run(step, log.fd);
    if (failure === null) return;
    const message = withLastLines(`${step.name} failed (${failure})`, log, SHOWN_LINES);
    throw new NightshiftError('internal', message);
  } finally {
    log.close();
  }
}

/** How the program failed; `null` for success. */
function run({ command, args, env, signal }: OneShot, fd: number): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { detached: true, stdio: ['ignore', fd, fd], env, signal });
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, killedBy) => {
      resolve(code === 0 ? null : (killedBy ?? `exit status ${code}`));
    });
  });
}
