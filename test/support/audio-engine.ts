import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../../platform/package-root';
import { findPythonEnvironment } from './python-environment';

/** The real audio worker of `examples/audio-worker`, as a process. */
export interface AudioEngine {
  /** Host and port. */
  readonly address: string;
  /** Sends SIGTERM. Resolves with the exit code, when running calls have ended. */
  stop(): Promise<number | null>;
  /** Ends it at once. */
  kill(): Promise<void>;
}

/** The longest that {@link startAudioEngine} takes on a busy machine. */
export const ENGINE_START_MS = 90_000;
const FOLDER = join(packageRoot(), 'examples', 'audio-worker');
const PROGRAM = join(FOLDER, 'worker.py');

/** Python with the engine's packages, or why tests with real speech are skipped. */
export interface FoundEngine {
  readonly python: string;
  /** To be added to the title of skipped tests; empty if they can run. */
  readonly skipped: string;
}

/** The first call on a machine installs 600 MB of packages. Without Python or a package index there are none. */
export function findAudioEngine(): FoundEngine {
  const found = findPythonEnvironment('audio-engine', join(FOLDER, 'requirements.txt'));
  if ('python' in found) return { python: found.python, skipped: '' };
  return { python: '', skipped: ` (skipped: ${found.missing})` };
}

/** Starts the engine with options of its command line. Resolves when it serves. It ends with the test at the latest. */
export async function startAudioEngine(
  python: string,
  args: readonly string[] = [],
): Promise<AudioEngine> {
  // Starts Python and ends with it, with its exit code; ends it if this process dies.
  const command = [join(__dirname, 'guard.js'), String(process.pid), python, ...nameOwnPid(args)];
  const guard = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  guard.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  const ended = once(guard, 'exit') as Promise<[number | null]>;
  const { pid, address } = await readyLine(guard).catch(async () => {
    await ended;
    throw new Error(`the audio engine did not start:\n${errors}`);
  });
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (guard.exitCode === null) process.kill(pid, signal);
    return (await ended)[0];
  };
  return { address, stop: () => end('SIGTERM'), kill: async () => void (await end('SIGKILL')) };
}

/** Runs the engine to its end, for options with which it does not start. */
export function runAudioEngine(
  python: string,
  { args = [], pythonArgs = [] }: { args?: readonly string[]; pythonArgs?: readonly string[] },
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const command = [...pythonArgs, PROGRAM, ...args];
  return spawnSync(python, command, { encoding: 'utf8', timeout: ENGINE_START_MS });
}

/** The program on a free port, after a line with its process id. */
function nameOwnPid(args: readonly string[]): string[] {
  const script =
    'import os, sys; print(os.getpid(), flush=True); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])';
  return ['-c', script, PROGRAM, '--port', '0', ...args];
}

async function readyLine(guard: ChildProcess): Promise<{ pid: number; address: string }> {
  if (guard.stdout === null) throw new Error('the output is not a pipe');
  let pid = 0;
  for await (const line of createInterface(guard.stdout)) {
    const [, address] = /^audio worker ready at (\S+)$/.exec(line) ?? [];
    if (address !== undefined) return { pid, address };
    pid = Number(line);
  }
  throw new Error('the output ended');
}
