'use strict';

/**
 * Loaded into every Node process of a stack that is profiled (`--require`): records a V8 CPU profile of the main thread of
 * each process of a worker, and of a gateway, and writes it to $BENCH_PROFILE_DIR when the process exits. Node does not take
 * `--cpu-prof` from the environment.
 */
const fs = require('node:fs');
const { Session } = require('node:inspector');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const INTERVAL_US = 500;
const dir = process.env.BENCH_PROFILE_DIR;

const [, program, argument] = process.argv;
/** One process of several of a worker is forked with a program of its own. */
const isOneOfSeveral = program?.endsWith(path.join('processes', 'child.js')) === true;
const command = isOneOfSeveral ? 'worker' : argument;

if (isMainThread && dir !== undefined && ['worker', 'gateway'].includes(command)) {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
  session.post('Profiler.start');
  // Callbacks of a session of the own thread run before `post` returns.
  process.on('exit', () => {
    session.post('Profiler.stop', (error, result) => {
      if (error !== null) return;
      const file = path.join(dir, `${command}-${process.pid}.cpuprofile`);
      fs.writeFileSync(file, JSON.stringify(result.profile));
    });
  });
}
