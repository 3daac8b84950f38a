import { execFile } from 'node:child_process';
import { NightshiftError } from '../../core/errors';

const TIMEOUT_MS = 20_000;

/**
 * What a program prints to standard output. @throws unavailable if it cannot be started, fails, or runs
 * longer than 20 s
 */
export function programOutput(path: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    // `spawn` would leave its timer behind if there is no such file, and keep this process alive.
    execFile(path, args, { timeout: TIMEOUT_MS }, (error, stdout) => {
      if (error === null) return resolve(stdout);
      const ended =
        error.signal ?? (typeof error.code === 'number' ? `exit status ${error.code}` : null);
      const what = ended === null ? error.message : `ended with ${ended}`;
      reject(new NightshiftError('unavailable', `${path} ${args.join(' ')}: ${what}`));
    });
  });
}
