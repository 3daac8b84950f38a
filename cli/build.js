'use strict';

/**
 * Builds `dist/`: the JavaScript of all product code, then the bundle of the workflows. Types are not
 * checked here but by `npm run typecheck`, so that a first start takes seconds. The new files are built
 * beside the old ones and moved into place at the end: a broken build changes nothing, and a running stack
 * keeps its files until then.
 */
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { ensureInstalled, isAlive, markBuilt } = require('./prepare');

const ROOT = path.resolve(__dirname, '..');
const DIST = path.join(ROOT, 'dist');
const NEXT = path.join(ROOT, `dist/.next-${process.pid}`);

function build() {
  if (!process.argv.includes('--prepared')) ensureInstalled();
  const startedAt = Date.now();
  fs.mkdirSync(DIST, { recursive: true });
  for (const folder of abandonedBuilds()) fs.rmSync(folder, { recursive: true, force: true });
  run([
    'node_modules/typescript/bin/tsc',
    '-p',
    'tsconfig.build.json',
    '--noCheck',
    '--outDir',
    NEXT,
  ]);
  writeTypes();
  swap();
  const bundler = path.join(DIST, 'workers', 'bundle-workflows.js');
  if (fs.existsSync(bundler)) run([bundler]);
  markBuilt();
  say(`built in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
}

/** The types of the package's one export. It refers to no other module, so one file is enough. */
function writeTypes() {
  // Loaded here, because a fresh clone installs it first.
  const ts = require('typescript');
  const name = 'embedded/start-stack';
  const { outputText, diagnostics } = ts.transpileDeclaration(
    fs.readFileSync(path.join(ROOT, `${name}.ts`), 'utf8'),
    { fileName: `${name}.ts`, reportDiagnostics: true },
  );
  for (const { messageText } of diagnostics) fail(`${name}.ts: ${JSON.stringify(messageText)}`);
  fs.writeFileSync(path.join(NEXT, `${name}.d.ts`), outputText);
}

/** Renames folder by folder, so that a process never loads a half-written file. */
function swap() {
  for (const entry of fs.readdirSync(DIST)) {
    if (!entry.startsWith('.next-')) fs.rmSync(path.join(DIST, entry), { recursive: true });
  }
  for (const entry of fs.readdirSync(NEXT)) {
    fs.renameSync(path.join(NEXT, entry), path.join(DIST, entry));
  }
  fs.rmdirSync(NEXT);
}

/** Folders of builds that were killed. A build that still runs keeps its folder. */
function abandonedBuilds() {
  return fs
    .readdirSync(DIST)
    .filter((name) => /^\.next-\d+$/.test(name) && !isAlive(Number(name.slice('.next-'.length))))
    .map((name) => path.join(DIST, name));
}

function run(args) {
  const done = spawnSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 2, 2] });
  if (done.status !== 0) fail(`node ${args.join(' ')}`);
}

function fail(what) {
  fs.rmSync(NEXT, { recursive: true, force: true });
  say(`failed: ${what}`);
  process.exit(1);
}

function say(message) {
  process.stderr.write(`nightshift: ${message}\n`);
}

build();
