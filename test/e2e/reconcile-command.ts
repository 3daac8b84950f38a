import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { packageRoot } from '../../platform/package-root';

/** How a command ended, and what it wrote. */
export interface CommandOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `nightshift reconcile` with the configuration of a running stack, as an operator does. */
export function runReconcile(configFile: string, ...flags: string[]): Promise<CommandOutcome> {
  const executable = join(packageRoot(), 'cli', 'nightshift.js');
  const args = [executable, 'reconcile', '--config', configFile, ...flags];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}
