'use strict';

/**
 * What must be true before any TypeScript of this package can run, in plain JavaScript with Node
 * alone, since a fresh clone has nothing else: the packages are installed and `dist/` is built
 * from the sources as they are. Used by `cli/nightshift.js`, `test/run.js` and `cli/build.js`.
 * Everything said goes to stderr; stdout belongs to the command.
 */
const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '..');
const MIN_NODE = [20, 19];
const STAMP = path.join(ROOT, 'dist', '.built-from');
const LOCK_POLL_MS = 100;
const LOCK_PATIENCE_MS = 15 * 60_000;
const BUILD_INPUTS = ['package-lock.json', 'rooms.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Throws where this Node is older than `engines` in package.json asks for. */
function ensureNode(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return;
  throw new Error(`Nightshift needs Node ${MIN_NODE.join('.')} or newer; this is ${version}`);
}

/**
 * Runs `npm ci` when packages are missing or differ from package-lock.json; otherwise it takes a
 * few milliseconds. An image without `tsconfig.build.json` is complete as it is and left alone.
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
      'npm ci failed; its message is above. Check the package registry and try again',
    );
  }
}

/** Runs `cli/build.js` when `dist/` was not built from the sources as they are now. */
function ensureBuilt() {
  if (!isImage()) oneAtATime(isBuilt, build);
}

function build() {
  process.stderr.write('nightshift: building ...\n');
  const done = spawnSync(process.execPath, [path.join(__dirname, 'build.js')], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  });
  if (done.status !== 0) throw new Error('the build failed; its message is above');
  markBuilt();
}

/** Two commands may be started at once in a fresh clone: one prepares it, the other waits. */
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
    if (waitedMs > LOCK_PATIENCE_MS) throw new Error(`another command holds ${lock} for too long`);
    if (!isAlive(Number(read(lock)))) fs.rmSync(lock, { force: true });
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
  }
  return () => fs.rmSync(lock, { force: true });
}

function creates(lock) {
  try {
    // Under its name it is complete: nobody can read it before the pid is in.
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

/** Whether a process of this number runs, of any user. */
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

/** Whether what npm installed is what package-lock.json asks for (optional packages aside). */
function isInstalled(root = ROOT) {
  const wanted = readJson(path.join(root, 'package-lock.json'))?.packages;
  // npm writes this file last, so an interrupted installation has none.
  const found = readJson(path.join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (!wanted || !found) return false;
  return Object.entries(wanted).every(([name, entry]) => {
    if (name === '') return true;
    const there = found[name];
    if (!there) return entry.optional === true;
    return there.version === entry.version;
  });
}

/** Whether `dist/` was built from the sources as they are. */
function isBuilt() {
  return read(STAMP) === sourcesHash();
}

/** Notes in `dist/` which sources it was built from; call it after a build that succeeded. */
function markBuilt() {
  fs.writeFileSync(STAMP, sourcesHash());
}

/** SHA-256 of every file a build depends on: names and contents, so a checkout's mtimes do not matter. */
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

/** npm's own script is run with this very Node where npm started us, `npm` of the PATH otherwise. */
function runNpm(args) {
  const script = process.env.npm_execpath;
  const options = { cwd: ROOT, stdio: ['ignore', 2, 2] };
  const byScript = script?.endsWith('npm-cli.js') && fs.existsSync(script);
  const done = byScript
    ? spawnSync(process.execPath, [script, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
  if (done.error) throw new Error(`npm could not be started: ${done.error.message}`);
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
