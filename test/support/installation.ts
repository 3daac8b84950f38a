import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { packageRoot } from '../../platform/package-root';
import { freePort } from './free-port';
import { until } from './until';

/**
 * Processes of an installation, one by one: `api` and `worker` of this checkout, or of another release, on
 * the shared servers of the tests.
 */
export interface Installation {
  /** Settings that every process gets; change them before a process starts. */
  readonly settings: Record<string, unknown>;
  /** Starts a process and waits until it is ready. */
  startApi(root?: string): Promise<RunningApi>;
  startWorker(root?: string): Promise<RunningPart>;
  /** Runs a command to its end. */
  run(args: readonly string[], root?: string): Promise<CommandEnd>;
  /** Kills what still runs, and removes the folder. */
  close(): Promise<void>;
}

/** A running process. */
export interface RunningPart {
  /** What it has logged. */
  log(): string;
  /** SIGTERM, as a deploy does; waits for the end. */
  stop(): Promise<void>;
  /** SIGKILL; waits for the end. */
  kill(): Promise<void>;
}

/** A running API. */
export interface RunningApi extends RunningPart {
  readonly client: OpenAI;
}

export interface CommandEnd {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const READY_MS = 60_000;
const END_MS = 60_000;

/** Opens a folder for settings and logs. Nothing runs yet. */
export function openInstallation(settings: Record<string, unknown>): Installation {
  const place: Place = {
    settings,
    folder: mkdtempSync(join(tmpdir(), 'nightshift-installation-')),
    children: new Set(),
  };
  return {
    settings,
    startApi: async (root = packageRoot()) => {
      const port = await freePort();
      const api = await start(place, 'api', { root, own: { port } });
      const baseURL = `http://127.0.0.1:${port}/v1`;
      return { ...api, client: new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 5 }) };
    },
    startWorker: (root = packageRoot()) => start(place, 'worker', { root, own: {} }),
    run: (args, root = packageRoot()) => {
      const all = [mainOf(root), ...args, '--config', configure(place, {})];
      return new Promise((resolve) => {
        execFile(process.execPath, all, (error, stdout, stderr) =>
          resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr }),
        );
      });
    },
    close: async () => {
      for (const child of place.children) child.kill('SIGKILL');
      await until(() => place.children.size === 0, END_MS, 'the end of all processes');
      rmSync(place.folder, { recursive: true, force: true });
    },
  };
}

interface Place {
  readonly settings: Record<string, unknown>;
  readonly folder: string;
  readonly children: Set<ChildProcess>;
}

/** Writes the settings of one process. Returns the file. */
function configure({ settings, folder }: Place, own: Record<string, object>): string {
  const merged: Record<string, unknown> = { ...settings };
  for (const [name, value] of Object.entries(own)) {
    merged[name] = { ...(settings[name] as object | undefined), ...value };
  }
  const file = join(folder, `${randomBytes(6).toString('hex')}.json`);
  writeFileSync(file, JSON.stringify(merged), { mode: 0o600 });
  return file;
}

async function start(
  place: Place,
  part: 'api' | 'worker',
  { root, own }: { readonly root: string; readonly own: object },
): Promise<RunningPart> {
  const observability = await freePort();
  const config = configure(place, { [part]: { ...own, observability_port: observability } });
  const logFile = `${config}.log`;
  const log = openSync(logFile, 'a');
  const args = [mainOf(root), part, '--config', config];
  const child = spawn(process.execPath, args, { stdio: ['ignore', log, log] });
  closeSync(log);
  place.children.add(child);
  child.once('exit', () => place.children.delete(child));
  const isReady = () => {
    if (hasEnded(child)) throw new Error(`${part} ended early:\n${readFileSync(logFile, 'utf8')}`);
    return fetch(`http://127.0.0.1:${observability}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await until(isReady, READY_MS, `${part} to be ready`, 50);
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    child.kill(signal);
    await until(() => hasEnded(child), END_MS, `the end of ${part}`);
  };
  return {
    log: () => readFileSync(logFile, 'utf8'),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function mainOf(root: string): string {
  return join(root, 'dist', 'cli', 'main.js');
}
