'use strict';

/** A Python with the packages of a requirements file: a virtual environment in the user's cache. */
const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const INSTALL_TIMEOUT_MS = 240_000;
const INSTALL = 'install --quiet --disable-pip-version-check --retries 1 --only-binary :all:';

/**
 * Makes it once for each version of the requirements and of Python.
 *
 * @param {string} name of its folder in the cache
 * @param {string} requirements file with hashes
 * @returns {{ python: string } | { missing: string }} the program, or why there is none
 */
function pythonEnvironment(name, requirements) {
  const version = run('python3', ['--version']);
  if (version.failure !== null) return { missing: 'there is no python3 on the PATH' };
  const hash = createHash('sha256').update(fs.readFileSync(requirements)).update(version.output);
  const folder = path.join(cacheFolder(), name, hash.digest('hex').slice(0, 16));
  const python = path.join(folder, 'bin', 'python');
  if (fs.existsSync(python)) return { python };
  // Another folder first: a killed benchmark leaves nothing that looks complete.
  const draft = `${folder}.${process.pid}`;
  const failure = install(draft, requirements);
  if (failure === null) fs.renameSync(draft, folder);
  else fs.rmSync(draft, { recursive: true, force: true });
  return failure === null ? { python } : { missing: `its packages do not install: ${failure}` };
}

function install(folder, requirements) {
  const steps = [
    ['python3', ['-m', 'venv', folder]],
    [
      path.join(folder, 'bin', 'pip'),
      [...INSTALL.split(' '), '--require-hashes', '-r', requirements],
    ],
  ];
  for (const [command, args] of steps) {
    const { failure } = run(command, args);
    if (failure !== null) return failure;
  }
  return null;
}

function run(command, args) {
  const done = spawnSync(command, args, { encoding: 'utf8', timeout: INSTALL_TIMEOUT_MS });
  const lastWords = done.stderr?.trim().split('\n').at(-1) ?? '';
  const failure = done.status === 0 ? null : (done.error?.message ?? lastWords);
  return { failure, output: done.stdout ?? '' };
}

function cacheFolder() {
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
  return path.join(cache, 'nightshift');
}

module.exports = { pythonEnvironment };
