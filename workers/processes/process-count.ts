import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';

/** What a host or container gives to a worker. */
export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
  /** Whether the memory is a limit of our own container, which we may use up. */
  readonly isOurs: boolean;
}

/** Memory of one process with 500 requests in flight, at most (docs/benchmarks.md#results). */
const PROCESS_BYTES = 350 * 1024 ** 2;
/** Part of the memory that the processes of a worker may use: of a container, and of a host that others use too. */
const OURS = 3 / 4;
const SHARED = 1 / 4;

/**
 * How many processes a worker has. `auto` leaves one core to others, and is bounded by the memory; at least 1
 * (docs/design/worker-processes.md#parent-and-processes).
 */
export function processCount(setting: number | 'auto', machine: Machine = readMachine()): number {
  if (setting !== 'auto') return setting;
  const part = machine.memoryBytes * (machine.isOurs ? OURS : SHARED);
  return Math.max(1, Math.min(machine.cores - 1, Math.floor(part / PROCESS_BYTES)));
}

function readMachine(): Machine {
  const limit = process.constrainedMemory();
  const isOurs = limit > 0 && limit < totalmem();
  return { cores: readCores(), memoryBytes: isOurs ? limit : totalmem(), isOurs };
}

/** Older versions of Node do not count the quota of a container. */
function readCores(): number {
  const cores = availableParallelism();
  const quota = readQuota('/sys/fs/cgroup/cpu.max');
  return quota === null ? cores : Math.min(cores, Math.max(1, Math.floor(quota)));
}

/** The cores of a control group: the file has a quota, or `max`, and a period. Null without a quota. */
function readQuota(path: string): number | null {
  try {
    const [quota, period] = readFileSync(path, 'utf8').trim().split(' ').map(Number);
    return quota !== undefined && period !== undefined && quota > 0 ? quota / period : null;
  } catch {
    return null;
  }
}
