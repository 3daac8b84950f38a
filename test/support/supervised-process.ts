import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../platform/package-root';
import { until } from './until';

/** A process of the product that is started again whenever it dies. */
export interface SupervisedProcess {
  /** Null while it is being started again. */
  pid(): number | null;
  /** What it has logged since its first start. */
  log(): string;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>;
}

export interface SupervisedOptions {
  /** The command of the command line. */
  readonly command: string;
  /** Writes the configuration before each start; the path of its file. */
  readonly writeConfig: () => string;
  readonly logFile: string;
  readonly observabilityPort: number;
  readonly env?: Readonly<Record<string, string>>;
}

const RESTART_MS = 250;
const READY_MS = 60_000;
const END_MS = 60_000;

/** Starts it and waits until it is ready. */
export async function startSupervised(options: SupervisedOptions): Promise<SupervisedProcess> {
  const { command, observabilityPort, logFile } = options;
  let child: ChildProcess | null = null;
  let isStopping = false;
  const start = (): void => {
    const started = spawnOnce(options);
    child = started;
    started.once('exit', () => {
      child = null;
      if (!isStopping) setTimeout(() => isStopping || start(), RESTART_MS);
    });
  };
  start();
  await until(() => isReady(observabilityPort), READY_MS, `${command} to be ready`, 50);
  return {
    pid: () => child?.pid ?? null,
    log: () => readFileSync(logFile, 'utf8'),
    stop: async () => {
      isStopping = true;
      child?.kill('SIGTERM');
      await until(() => child === null, END_MS, `the end of ${command}`);
    },
  };
}

/** Whether the process with this observability port is ready. */
export function isReady(observabilityPort: number): Promise<boolean> {
  const signal = AbortSignal.timeout(2_000);
  return fetch(`http://127.0.0.1:${observabilityPort}/ready`, { signal })
    .then(({ ok }) => ok)
    .catch(() => false);
}

function spawnOnce({ command, writeConfig, logFile, env }: SupervisedOptions): ChildProcess {
  const log = openSync(logFile, 'a');
  const program = join(packageRoot(), 'dist', 'cli', 'main.js');
  const child = spawn(process.execPath, [program, command, '--config', writeConfig()], {
    stdio: ['ignore', log, log],
    env: { ...process.env, ...env },
  });
  closeSync(log);
  return child;
}
