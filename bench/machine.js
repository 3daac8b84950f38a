'use strict';

/** The facts about the machine that a reader needs to judge the figures. */
const { spawnSync } = require('node:child_process');
const os = require('node:os');
const path = require('node:path');

/** @param {string} root the checkout that is measured */
function machineFacts(root) {
  const cpus = os.cpus();
  return {
    date: new Date().toISOString(),
    commit: output('git', ['-C', root, 'rev-parse', '--short', 'HEAD']),
    changed: output('git', ['-C', root, 'status', '--porcelain', '-uno']) !== '',
    cpu: `${cpus.length} x ${cpus[0]?.model.trim()}`,
    memoryGb: Math.round(os.totalmem() / 1e9),
    os: `${os.type()} ${os.release()}`,
    node: process.versions.node,
    undici: require(path.join(root, 'node_modules', 'undici', 'package.json')).version,
    load1: os.loadavg()[0],
  };
}

function output(command, args) {
  const { stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return (stdout ?? '').trim();
}

module.exports = { machineFacts };
