import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../platform/package-root';
import { freePort } from './free-port';
import { until } from './until';

/** One process of an installation, as on a host of its own: it shares no folder with the others. */
export interface Host {
  readonly name: string;
  /** Base URL of an API. */
  readonly baseUrl: string;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves when it has drained. */
  stop(): Promise<void>;
}

/** What to start. */
export interface HostOptions {
  readonly command: 'api' | 'worker';
  readonly name: string;
  /** Folder for the folders of all hosts. */
  readonly folder: string;
  /** Settings that all processes share. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Settings of this process. */
  readonly own?: Readonly<Record<string, unknown>>;
}

const READY_MS = 60_000;
const END_MS = 60_000;

/**
 * Starts an API or a worker of the build, and waits until it is ready. Its working directory and its
 * folder for temporary files are its own.
 */
export async function startHost(options: HostOptions): Promise<Host> {
  const { command, name } = options;
  const folder = join(options.folder, name);
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  const [port, observabilityPort] = [await freePort(), await freePort()];
  const config = join(folder, 'config.json');
  const ports = { port, observability_port: observabilityPort };
  const own = command === 'api' ? { api: ports } : { worker: { ...ports, port: undefined } };
  writeFileSync(config, JSON.stringify(merged(options.settings, own, options.own ?? {})));
  const logFile = join(folder, 'log');
  const log = openSync(logFile, 'a');
  const args = [join(packageRoot(), 'dist', 'cli', 'main.js'), command, '--config', config];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, TMPDIR: join(folder, 'tmp') },
    stdio: ['ignore', log, log],
  });
  const isReady = async (): Promise<boolean> => {
    if (hasEnded(child)) throw new Error(`${name} has ended:\n${readFileSync(logFile, 'utf8')}`);
    const url = `http://127.0.0.1:${observabilityPort}/ready`;
    return fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await until(isReady, READY_MS, `${name} to be ready`, 50);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await until(() => hasEnded(child), END_MS, `the end of ${name}`);
  };
  return {
    name,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Settings of one level below the top are merged, as two files would be. */
function merged(...layers: readonly Readonly<Record<string, unknown>>[]): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const layer of layers) {
    for (const [key, value] of Object.entries(layer)) {
      const below = all[key];
      all[key] = isObject(below) && isObject(value) ? { ...below, ...value } : value;
    }
  }
  return all;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
