#!/usr/bin/env node
'use strict';

/** The functions in which a profiled process spent its time: `node bench/top-functions.js <dir>`. */
const fs = require('node:fs');
const path = require('node:path');
const { table } = require('./report');

const SHOWN = 40;

function main([dir, pid]) {
  if (dir === undefined || dir === '--help') {
    process.stdout.write(
      'Usage: node bench/top-functions.js <dir> [pid]\n\n' +
        'Self time of the functions in a profile that `run.js --profile <dir>` kept: that of the\n' +
        'process with this pid, or the largest.\n',
    );
    return;
  }
  const names = fs.readdirSync(dir).filter((name) => name.endsWith('.cpuprofile'));
  const sized = names
    .filter((name) => pid === undefined || name.endsWith(`-${pid}.cpuprofile`))
    .map((name) => ({ name, size: fs.statSync(path.join(dir, name)).size }))
    .sort((a, b) => b.size - a.size);
  if (sized.length === 0) throw new Error(`no profile of ${pid ?? 'any process'} in ${dir}`);
  const { name } = sized[0];
  process.stdout.write(`${name}\n${table(topOf(path.join(dir, name)))}\n`);
}

/** Self times summed by function; what is idle is left out of the shares. */
function topOf(file) {
  const { nodes, samples, timeDeltas } = JSON.parse(fs.readFileSync(file, 'utf8'));
  const byId = new Map(nodes.map((node) => [node.id, place(node.callFrame)]));
  const selfUs = new Map();
  samples.forEach((id, at) => {
    const where = byId.get(id);
    selfUs.set(where, (selfUs.get(where) ?? 0) + timeDeltas[at]);
  });
  selfUs.delete('(idle)');
  const busyUs = [...selfUs.values()].reduce((sum, us) => sum + us, 0);
  const sorted = [...selfUs].sort(([, a], [, b]) => b - a).slice(0, SHOWN);
  return sorted.map(([where, us]) => ({
    'self, ms': (us / 1000).toFixed(0),
    share: `${((us / busyUs) * 100).toFixed(1)} %`,
    where,
  }));
}

function place({ functionName, url, lineNumber }) {
  const file = url.replace(/^file:\/\//, '').replace(/^.*\/(?=dist\/|node_modules\/)/, '');
  const name = functionName === '' ? '(anonymous)' : functionName;
  return file === '' ? name : `${name} ${file}:${lineNumber + 1}`;
}

main(process.argv.slice(2));
