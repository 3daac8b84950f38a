import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { cachedProgram } from '../../embedded/binaries/program-cache';
import { lockFile } from '../../embedded/locks/lock-file';

/** A Python with the packages of a requirements file, or why there is none. */
export type PythonEnvironment = { readonly python: string } | { readonly missing: string };

const CANDIDATES = ['python3', 'python3.13', 'python3.12', 'python3.11'];
const OLDEST_MINOR = 11;
const INSTALL_LIMIT_MS = 4 * 60_000;
/** After a failure, other test files do not try again for so long. */
const FAILURE_COUNTS_MS = 30 * 60_000;
const LOCK_RETRY_MS = 500;

/**
 * A virtual environment in the user's cache, made once for each version of the requirements and of Python. Several
 * test processes may ask at once: one installs, the others wait. Blocks, so that a test file can choose between
 * `describe` and `describe.skip`.
 */
export function findPythonEnvironment(name: string, requirements: string): PythonEnvironment {
  const found = findPython();
  if (found === null)
    return { missing: `there is no python3 of version 3.${OLDEST_MINOR} or newer` };
  const hash = createHash('sha256').update(readFileSync(requirements)).update(found.version);
  const version = hash.digest('hex').slice(0, 16);
  const folder = cachedProgram({ name, version }, process.env);
  const python = join(folder, 'bin', 'python');
  if (existsSync(python)) return { python };
  mkdirSync(dirname(folder), { recursive: true });
  const lock = takeLock(`${folder}.lock`);
  if (lock === null)
    return { missing: 'another process has been installing the packages for too long' };
  try {
    if (existsSync(python)) return { python };
    const note = `${folder}.failure`;
    const noted = notedFailure(note);
    if (noted !== null) return { missing: noted };
    const failure = install(found.command, requirements, folder);
    if (failure === null) return { python };
    writeFileSync(note, failure);
    return { missing: failure };
  } finally {
    lock.release();
  }
}

/** Why another process has failed just now; null if none has. */
function notedFailure(file: string): string | null {
  const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return age < FAILURE_COUNTS_MS ? readFileSync(file, 'utf8') : null;
}

/** Installs into another folder first, so that a killed test leaves nothing that looks complete. */
function install(command: string, requirements: string, folder: string): string | null {
  const draft = `${folder}.part`;
  rmSync(draft, { recursive: true, force: true });
  const options = [
    '--quiet',
    '--disable-pip-version-check',
    '--retries',
    '1',
    '--only-binary',
    ':all:',
  ];
  const steps = [
    [command, '-m', 'venv', draft],
    [
      join(draft, 'bin', 'python'),
      '-m',
      'pip',
      'install',
      ...options,
      '--require-hashes',
      '-r',
      requirements,
    ],
  ];
  for (const [program = '', ...args] of steps) {
    const done = spawnSync(program, args, { timeout: INSTALL_LIMIT_MS, encoding: 'utf8' });
    if (done.status === 0) continue;
    rmSync(draft, { recursive: true, force: true });
    const last = done.stderr?.trim().split('\n').at(-1) ?? '';
    const isLate =
      done.error !== undefined && 'code' in done.error && done.error.code === 'ETIMEDOUT';
    const reason = isLate ? `it took longer than ${INSTALL_LIMIT_MS / 60_000} minutes` : last;
    return `its packages could not be installed: ${reason}`;
  }
  renameSync(draft, folder);
  return null;
}

function findPython(): { command: string; version: string } | null {
  const script = 'import sys; print("%d.%d" % sys.version_info[:2])';
  for (const command of CANDIDATES) {
    const version = spawnSync(command, ['-c', script], { encoding: 'utf8' }).stdout?.trim() ?? '';
    const [major = 0, minor = 0] = version.split('.').map(Number);
    if (major === 3 && minor >= OLDEST_MINOR) return { command, version };
  }
  return null;
}

function takeLock(file: string): { release(): void } | null {
  const deadline = performance.now() + INSTALL_LIMIT_MS;
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (performance.now() < deadline) {
    const lock = lockFile(file);
    if (lock.kind === 'held') return lock;
    Atomics.wait(clock, 0, 0, LOCK_RETRY_MS);
  }
  return null;
}
