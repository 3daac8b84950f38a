'use strict';

const { median } = require('../figures');
const { memoryMb } = require('../process-stats');

/** Passes after the first one. */
const PASSES = 5;

/**
 * Runs `work` once, so that the code is compiled, and then five times, each with its own time.
 *
 * @param {() => Promise<number>} work returns how many lines it has read
 * @returns {Promise<{ lines: number, seconds: number, cpuSec: number, idleMb: number, peakMb: number }>}
 *   medians of the five passes; the memory is that of the whole process: before all of them, and at its peak
 */
async function measureWarm(work) {
  const idleMb = memoryMb(process.pid).now;
  const lines = await work();
  const seconds = [];
  const cpuSec = [];
  for (let pass = 0; pass < PASSES; pass++) {
    const cpu = process.cpuUsage();
    const startedMs = performance.now();
    if ((await work()) !== lines) throw new Error('a pass found another number of lines');
    seconds.push((performance.now() - startedMs) / 1000);
    const { user, system } = process.cpuUsage(cpu);
    cpuSec.push((user + system) / 1e6);
  }
  const { peak } = memoryMb(process.pid);
  return { lines, seconds: median(seconds), cpuSec: median(cpuSec), idleMb, peakMb: peak };
}

module.exports = { measureWarm };
