'use strict';

/**
 * Prepares a clone: installs the packages and builds `dist/` if they are missing or outdated. Plain
 * JavaScript without packages, because a fresh clone has nothing else. Used by the executable, the build
 * and the test runners. All messages go to stderr; stdout is for the command's results.
 */
const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '..');
const MIN_NODE = [20, 19];
const STAMP = path.join(ROOT, 'dist', '.built-from');
const LOCK_POLL_MS = 100;
const LOCK_TIMEOUT_MS = 15 * 60_000;
const BUILD_INPUTS = ['package-lock.json', 'rooms.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Throws if this Node is older than `engines` in package.json requires. */
function ensureNode(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return;
  throw new Error(`Nightshift needs Node ${MIN_NODE.join('.')} or newer; this is ${version}`);
}

/**
 * Runs `npm ci` if packages are missing or differ from package-lock.json. Otherwise it takes a few
 * milliseconds. A container image, which has no `tsconfig.build.json`, is complete and never changed.
 */
function ensureInstalled() {
  ensureNode();
  if (!isImage()) oneAtATime(isInstalled, install);
}

function install() {
  process.stderr.write('nightshift: installing packages with npm ci (once) ...\n');
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  if (runNpm(args) !== 0) {
    throw new Error(
      'npm ci failed, see its message above: check the network and the package registry, then try again',
    );
  }
}

/** Runs `cli/build.js` unless `dist/` was built from the current sources. */
function ensureBuilt() {
  if (!isImage()) oneAtATime(isBuilt, build);
}

function build() {
  process.stderr.write('nightshift: building ...\n');
  // The build must not wait for the lock that we hold.
  const done = spawnSync(process.execPath, [path.join(__dirname, 'build.js'), '--prepared'], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  });
  if (done.status !== 0) throw new Error('the build failed, see its message above');
  markBuilt();
}

/** If two commands start at once in a fresh clone, one prepares it and the other waits. */
function oneAtATime(isDone, work) {
  if (isDone()) return;
  const release = acquire(path.join(ROOT, '.prepare.lock'));
  try {
    if (!isDone()) work();
  } finally {
    release();
  }
}

function acquire(lock) {
  for (let waitedMs = 0; !creates(lock); waitedMs += LOCK_POLL_MS) {
    if (waitedMs > LOCK_TIMEOUT_MS)
      throw new Error(
        `another command has been preparing this clone for ${LOCK_TIMEOUT_MS / 60_000} minutes: stop it, or delete ${lock}`,
      );
    if (!isAlive(Number(read(lock)))) fs.rmSync(lock, { force: true });
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
  }
  return () => fs.rmSync(lock, { force: true });
}

function creates(lock) {
  try {
    // A hard link to a finished draft: the lock never exists without its pid.
    const own = `${lock}.${process.pid}`;
    fs.writeFileSync(own, String(process.pid));
    try {
      fs.linkSync(own, lock);
    } finally {
      fs.rmSync(own);
    }
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Whether a process with this pid runs, of this or another user. */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Whether the installed packages match package-lock.json. Optional packages may be missing. */
function isInstalled(root = ROOT) {
  const wanted = readJson(path.join(root, 'package-lock.json'))?.packages;
  // npm writes this file last, so it is missing after an interrupted installation.
  const found = readJson(path.join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (!wanted || !found) return false;
  return Object.entries(wanted).every(([name, entry]) => {
    if (name === '') return true;
    const there = found[name];
    if (!there) return entry.optional === true;
    return there.version === entry.version;
  });
}

/** Whether `dist/` was built from the current sources. */
function isBuilt() {
  return read(STAMP) === sourcesHash();
}

/** Records in `dist/` the sources it was built from. Call it after a successful build. */
function markBuilt() {
  fs.writeFileSync(STAMP, sourcesHash());
}

/** SHA-256 of names and contents of all files that a build reads. Modification times do not matter. */
function sourcesHash(root = ROOT) {
  const hash = createHash('sha256');
  const rooms = Object.keys(readJson(path.join(root, 'rooms.json')) ?? {});
  const files = [...BUILD_INPUTS, ...rooms.flatMap((room) => filesBelow(root, room))];
  for (const file of files.sort()) {
    hash
      .update(`${file}\0`)
      .update(fs.readFileSync(path.join(root, file)))
      .update('\0');
  }
  return hash.digest('hex');
}

function filesBelow(root, folder) {
  if (!fs.existsSync(path.join(root, folder))) return [];
  const entries = fs.readdirSync(path.join(root, folder), { withFileTypes: true });
  return entries.flatMap((entry) => {
    const name = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(root, name) : entry.isFile() ? [name] : [];
  });
}

function isImage() {
  return !fs.existsSync(path.join(ROOT, 'tsconfig.build.json'));
}

function readJson(file) {
  try {
    return JSON.parse(read(file));
  } catch {
    return undefined;
  }
}

/** Uses the npm that started this process, with the same Node; otherwise `npm` on the PATH. */
function runNpm(args) {
  const script = process.env.npm_execpath;
  const options = { cwd: ROOT, stdio: ['ignore', 2, 2] };
  const byScript = script?.endsWith('npm-cli.js') && fs.existsSync(script);
  const done = byScript
    ? spawnSync(process.execPath, [script, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
  if (done.error)
    throw new Error(
      `npm could not be started (${done.error.message}): install npm, or put it on the PATH`,
    );
  return done.status;
}

module.exports = {
  ensureBuilt,
  ensureInstalled,
  ensureNode,
  isAlive,
  isBuilt,
  isInstalled,
  markBuilt,
  sourcesHash,
};
