import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { until } from './until';

/** A server that all test files of a Jest run share. The first process that needs it starts it. */
export interface SharedServer<T> {
  /** Distinguishes the servers of a run; also the name of its files in the run's folder. */
  readonly name: string;
  /**
   * Starts it and resolves with its description (plain JSON) for the other processes. Long-lived processes
   * are started with {@link spawnGuarded}, so that they end with the run.
   */
  readonly start: (folder: string) => Promise<T>;
  /** How long other test files wait for the first one to start it. */
  readonly startLimitMs: number;
}

/** Starts the server unless another test file of this run has started it. Resolves with its description. */
export async function oncePerRun<T>(server: SharedServer<T>): Promise<T> {
  const run = runFolder();
  const answer = path.join(run, `${server.name}.json`);
  if (!claims(path.join(run, `${server.name}.lock`))) {
    await until(() => fs.existsSync(answer), server.startLimitMs, `${server.name} to be started`);
    return readAnswer<T>(answer);
  }
  const folder = path.join(run, server.name);
  fs.mkdirSync(folder);
  const outcome = await server.start(folder).then(
    (value) => ({ value }),
    (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
  );
  // Renamed into place, so that no reader sees half a file.
  fs.writeFileSync(`${answer}.part`, JSON.stringify(outcome));
  fs.renameSync(`${answer}.part`, answer);
  return readAnswer<T>(answer);
}

/** Starts a process that ends with this Jest run at the latest. Returns the log file of its output. */
export function spawnGuarded(name: string, command: string, args: readonly string[]): string {
  const run = runFolder();
  const logFile = path.join(run, `${name}.log`);
  const log = fs.openSync(logFile, 'a');
  const owner = process.env['NIGHTSHIFT_TEST_OWNER_PID'] ?? String(process.pid);
  const guard = spawn(
    process.execPath,
    [path.join(__dirname, 'guard.js'), owner, command, ...args],
    {
      stdio: ['ignore', log, log],
      detached: true,
    },
  );
  guard.unref();
  fs.closeSync(log);
  fs.writeFileSync(path.join(run, `${name}.guard`), String(guard.pid));
  return logFile;
}

/** The folder of this Jest run; removed with everything in it when the run is over. */
export function runFolder(): string {
  const folder = process.env['NIGHTSHIFT_TEST_RUN'];
  if (!folder) throw new Error('run the tests with Jest: its global setup opens the run folder');
  return folder;
}

function claims(lock: string): boolean {
  try {
    fs.mkdirSync(lock);
    return true;
  } catch {
    return false;
  }
}

function readAnswer<T>(file: string): T {
  const outcome = JSON.parse(fs.readFileSync(file, 'utf8')) as { value: T; error?: string };
  if (outcome.error !== undefined) throw new Error(outcome.error);
  return outcome.value;
}
