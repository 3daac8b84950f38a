import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../platform/package-root';
import { freePort } from './free-port';
import type { TestStack } from './stack';
import { until } from './until';

/** A worker beside the stack's own, started again whenever it dies. */
export interface SecondWorker {
  /** Null between two lives. */
  pid(): number | null;
  stop(): Promise<void>;
}

const RESTART_MS = 250;
const READY_MS = 60_000;

/** Starts it with the stack's settings, another port for its health; ready when it says so. */
export async function startSecondWorker(stack: TestStack): Promise<SecondWorker> {
  const settings = JSON.parse(
    readFileSync(join(stack.dataDir, 'run', 'config.json'), 'utf8'),
  ) as Record<string, Record<string, unknown>>;
  const port = await freePort();
  settings['worker'] = { ...settings['worker'], observability_port: port };
  const file = join(stack.dataDir, 'run', 'second-worker.json');
  writeFileSync(file, JSON.stringify(settings), { mode: 0o600 });
  const log = openSync(join(stack.dataDir, 'logs', 'second-worker.log'), 'a');
  const args = [join(packageRoot(), 'dist', 'cli', 'main.js'), 'worker', '--config', file];
  let child: ChildProcess | null = null;
  let stopping = false;
  const start = (): void => {
    const started = spawn(process.execPath, args, { stdio: ['ignore', log, log] });
    child = started;
    started.once('exit', () => {
      child = null;
      if (!stopping) setTimeout(() => stopping || start(), RESTART_MS);
    });
  };
  start();
  const isReady = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/ready`, { signal: AbortSignal.timeout(2_000) })
      .then(({ ok }) => ok)
      .catch(() => false);
  await until(isReady, READY_MS, 'the second worker', 100);
  return {
    pid: () => child?.pid ?? null,
    stop: async () => {
      stopping = true;
      child?.kill('SIGTERM');
      await until(() => child === null, 60_000, 'the end of the second worker');
    },
  };
}
