import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../platform/package-root';
import { freePort } from './free-port';
import { until } from './until';

/** Settings of a stack, as its processes get them. */
export type StackSettings = Record<string, Record<string, unknown>>;

/** An API or a worker beside the processes of a stack. It is started again whenever it dies. */
export interface ProcessBesideStack {
  readonly command: 'api' | 'worker';
  /** Base URL of an API. */
  readonly baseUrl: string;
  readonly observabilityPort: number;
  /** Null while it is being started again. */
  pid(): number | null;
  log(): string;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>;
}

export interface ProcessBesideStackOptions {
  readonly command: 'api' | 'worker';
  /** Name of its files in the data directory of the stack. */
  readonly name: string;
  /** Data directory of the stack. */
  readonly dataDir: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Changes the settings of the stack for this process. */
  readonly change?: (settings: StackSettings) => void;
}

const RESTART_MS = 250;
const READY_MS = 60_000;
const END_MS = 60_000;

/** Starts it with the settings that the stack has at each start, on ports of its own. Waits until it is ready. */
export async function startBesideStack(
  options: ProcessBesideStackOptions,
): Promise<ProcessBesideStack> {
  const { command, name, dataDir } = options;
  const [port, observabilityPort] = [await freePort(), await freePort()];
  const ports = { observability_port: observabilityPort, ...(command === 'api' ? { port } : {}) };
  const logFile = join(dataDir, 'logs', `${name}.log`);
  let child: ChildProcess | null = null;
  let isStopping = false;
  const start = (): void => {
    const started = spawnWith(options, ports, logFile);
    child = started;
    started.once('exit', () => {
      child = null;
      if (!isStopping) setTimeout(() => isStopping || start(), RESTART_MS);
    });
  };
  start();
  const isReady = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${observabilityPort}/ready`, { signal: AbortSignal.timeout(2_000) })
      .then(({ ok }) => ok)
      .catch(() => false);
  await until(isReady, READY_MS, `${name} to be ready`, 50);
  return {
    command,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    observabilityPort,
    pid: () => child?.pid ?? null,
    log: () => readFileSync(logFile, 'utf8'),
    stop: async () => {
      isStopping = true;
      child?.kill('SIGTERM');
      await until(() => child === null, END_MS, `the end of ${name}`);
    },
  };
}

function spawnWith(
  { command, name, dataDir, env, change }: ProcessBesideStackOptions,
  ports: object,
  logFile: string,
): ChildProcess {
  const folder = join(dataDir, 'run');
  const settings = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as StackSettings;
  settings[command] = { ...settings[command], ...ports };
  change?.(settings);
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(settings), { mode: 0o600 });
  const log = openSync(logFile, 'a');
  const args = [join(packageRoot(), 'dist', 'cli', 'main.js'), command, '--config', file];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', log, log],
    env: { ...process.env, ...env },
  });
  closeSync(log);
  return child;
}
