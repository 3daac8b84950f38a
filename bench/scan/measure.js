'use strict';

const { memoryMb } = require('../process-stats');

/**
 * Runs `work` twice and measures the second time, when the code is compiled.
 *
 * @param {() => Promise<number>} work returns how many lines it has read
 * @returns {Promise<{ lines: number, seconds: number, cpuSec: number, idleMb: number, peakMb: number }>}
 *   the memory is that of the whole process: before both times, and at its peak
 */
async function measureSecond(work) {
  const idleMb = memoryMb(process.pid).now;
  await work();
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  const lines = await work();
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const cpuSec = (user + system) / 1e6;
  return { lines, seconds, cpuSec, idleMb, peakMb: memoryMb(process.pid).peak };
}

module.exports = { measureSecond };
