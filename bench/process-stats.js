'use strict';

/** Memory and processor time of other processes, from /proc. */
const fs = require('node:fs');
const os = require('node:os');

/** Ticks of /proc/<pid>/stat per second: fixed in the Linux interface. */
const TICKS_PER_SEC = 100;
/** Each sample reads all of /proc, on the cores that are measured. */
const SAMPLE_MS = 500;

/** Resident memory in MB (10^6 bytes): now, and its highest value since the process began. */
function memoryMb(pid) {
  const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
  return { now: field(status, 'VmRSS'), peak: field(status, 'VmHWM') };
}

/** That of a process and all below it: a worker may be several. Of the peaks it is the sum, so it may be too high. */
function familyMb(root) {
  return family([root])
    .map(memoryMb)
    .reduce((sum, { now, peak }) => ({ now: sum.now + now, peak: sum.peak + peak }), {
      now: 0,
      peak: 0,
    });
}

function familySec(root) {
  return family([root]).reduce((sum, pid) => sum + cpuSec(pid), 0);
}

function field(status, name) {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status);
  return kib === null ? 0 : (Number(kib[1]) * 1024) / 1e6;
}

/** Processor seconds of a process and of the children that it has waited for. */
function cpuSec(pid) {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SEC;
  } catch {
    return 0;
  }
}

/** Every process below `roots`, themselves included: Postgres works in children of its own. */
function family(roots) {
  const parentOf = new Map();
  for (const name of fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = fs.readFileSync(`/proc/${name}/stat`, 'utf8');
      parentOf.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It has ended in the meantime.
    }
  }
  const isOurs = (pid) => {
    for (let at = pid, steps = 0; at > 1 && steps < 64; at = parentOf.get(at) ?? 0, steps++) {
      if (roots.includes(at)) return true;
    }
    return false;
  };
  return [...parentOf.keys()].filter(isOurs);
}

/** Processor seconds of the whole machine. */
function machineCpuSec() {
  const [user, nice, system, , , irq, softirq] = fs
    .readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / TICKS_PER_SEC;
}

/**
 * Watches until `end`: how much processor we used and how much somebody else did, and the memory of
 * `memoryOf`. What others used is the reason for most bad figures on a shared machine.
 *
 * @param {{ roots: number[], memoryOf: number }} options pids; the family of `roots` is ours
 */
function watch({ roots, memoryOf }) {
  const startedMs = performance.now();
  const before = { machine: machineCpuSec(), ours: oursSec(roots), subject: familySec(memoryOf) };
  const samplesMb = [];
  // A row that fails never ends its observation.
  const timer = setInterval(() => samplesMb.push(familyMb(memoryOf).now), SAMPLE_MS).unref();
  return {
    end() {
      clearInterval(timer);
      const seconds = (performance.now() - startedMs) / 1000;
      const ours = oursSec(roots) - before.ours;
      const machine = machineCpuSec() - before.machine;
      const settled = samplesMb.slice(Math.floor(samplesMb.length / 2)).sort((a, b) => a - b);
      return {
        load1: os.loadavg()[0],
        oursCores: ours / seconds,
        oursSec: ours,
        othersCores: Math.max(0, machine - ours) / seconds,
        cpuSec: familySec(memoryOf) - before.subject,
        steadyMb: settled[Math.floor(settled.length / 2)] ?? familyMb(memoryOf).now,
        peakMb: familyMb(memoryOf).peak,
      };
    },
  };
}

function oursSec(roots) {
  return family([...roots, process.pid]).reduce((sum, pid) => sum + cpuSec(pid), 0);
}

module.exports = { cpuSec, family, machineCpuSec, memoryMb, watch };
