'use strict';

/** Jest's global teardown: stops the servers that were started for this run, removes its folder. */
const fs = require('node:fs');
const path = require('node:path');

const PATIENCE_MS = 15_000;

module.exports = async function closeRun() {
  const folder = process.env.NIGHTSHIFT_TEST_RUN;
  if (!folder) return;
  const pids = guardPids(folder);
  for (const pid of pids) signal(pid, 'SIGTERM');
  const deadline = Date.now() + PATIENCE_MS;
  while (pids.some((pid) => signal(pid, 0)) && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
};

function guardPids(folder) {
  return fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.guard'))
    .map((name) => Number(fs.readFileSync(path.join(folder, name), 'utf8')));
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
