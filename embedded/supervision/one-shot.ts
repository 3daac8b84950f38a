import { spawn } from 'node:child_process';
import { NightshiftError } from '../../core/errors';
import { openComponentLog } from './component-log';

/** A program that runs to its end once, such as `initdb` or `nightshift migrate`. */
export interface OneShot {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logPath: string;
  readonly signal: AbortSignal;
}

const SHOWN_LINES = 15;

/** Runs a step that ends by itself, its output in a log file. @throws internal with its last lines */
export async function runOneShot(step: OneShot): Promise<void> {
  const log = openComponentLog(step.logPath, () => undefined);
  try {
    const how = await ended(step, log.fd);
    if (how === null) return;
    const lines = log.lastLines(SHOWN_LINES).map((line) => `  ${line}`);
    const message = `${step.name} failed (${how}). Its last lines:\n${lines.join('\n')}\nThe whole log: ${step.logPath}`;
    throw new NightshiftError('internal', message);
  } finally {
    log.close();
  }
}

/** `null` for success, otherwise how it ended. */
function ended({ command, args, env, signal }: OneShot, fd: number): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { detached: true, stdio: ['ignore', fd, fd], env, signal });
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, killedBy) => {
      resolve(code === 0 ? null : (killedBy ?? `exit status ${code}`));
    });
  });
}
