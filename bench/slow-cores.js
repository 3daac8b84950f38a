'use strict';

/**
 * Slow cores that a worker has for itself, by quotas of the kernel (cgroup v1, controller `cpu`, as root). On two cores that
 * also run the model server, Temporal and PostgreSQL, a second process only takes from these; cores of a third
 * of the speed leave them enough.
 */
const fs = require('node:fs');
const path = require('node:path');
const { family } = require('./process-stats');

const ROOT = '/sys/fs/cgroup/cpu';
/** Long against the kernel's own slices, so that quotas are kept. */
const PERIOD_US = 50_000;

/** Why this machine cannot do it; null if it can. */
function obstacle() {
  if (process.getuid() !== 0) return 'needs root, to give threads quotas';
  if (!fs.existsSync(path.join(ROOT, 'cpu.cfs_quota_us'))) {
    return `needs the controller cpu of cgroup v1 at ${ROOT}`;
  }
  return null;
}

/**
 * Lets the processes below `pid` use `cores` cores, each of `share` of the speed of a real one: that is the most for all of
 * them together, and one core for the main thread of each. Call what it returns to lift the quotas.
 */
function onSlowCores(pid, { cores, share }) {
  const group = path.join(ROOT, `nightshift-bench-${pid}`);
  const groups = [openGroup(group, cores * share)];
  const members = family([pid]);
  for (const member of members) {
    for (const thread of fs.readdirSync(`/proc/${member}/task`)) join(group, thread);
  }
  for (const member of members) {
    const own = openGroup(path.join(group, String(member)), share);
    join(own, member);
    groups.push(own);
  }
  return () => groups.reverse().forEach(close);
}

function openGroup(group, share) {
  fs.mkdirSync(group);
  fs.writeFileSync(path.join(group, 'cpu.cfs_period_us'), String(PERIOD_US));
  fs.writeFileSync(path.join(group, 'cpu.cfs_quota_us'), String(Math.round(share * PERIOD_US)));
  return group;
}

function close(group) {
  const threads = fs.readFileSync(path.join(group, 'tasks'), 'utf8').split('\n').filter(Boolean);
  for (const thread of threads) join(ROOT, thread);
  fs.rmdirSync(group);
}

function join(group, thread) {
  try {
    fs.writeFileSync(path.join(group, 'tasks'), String(thread));
  } catch (error) {
    // It has ended in the meantime.
    if (error.code !== 'ESRCH') throw error;
  }
}

module.exports = { obstacle, onSlowCores };
