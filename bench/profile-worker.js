'use strict';

/**
 * Loaded into every Node process of a stack that is profiled (`--require`): records a V8 CPU profile
 * of the worker's main thread and writes it to $BENCH_PROFILE_DIR when the process exits. Node does
 * not take `--cpu-prof` from the environment.
 */
const fs = require('node:fs');
const { Session } = require('node:inspector');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const INTERVAL_US = 500;
const dir = process.env.BENCH_PROFILE_DIR;

if (isMainThread && dir !== undefined && process.argv[2] === 'worker') {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
  session.post('Profiler.start');
  // Callbacks of a session of the own thread run before `post` returns.
  process.on('exit', () => {
    session.post('Profiler.stop', (error, result) => {
      if (error !== null) return;
      const file = path.join(dir, `worker-${process.pid}.cpuprofile`);
      fs.writeFileSync(file, JSON.stringify(result.profile));
    });
  });
}
