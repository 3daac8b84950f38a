import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Identifies a process. A later process with the same pid has another start time. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque text of boot and start time; `null` if the system does not show it. */
  readonly startedAt: string | null;
}

/** Identity of a living process, or `null` if there is none. A zombie counts as ended. */
export function identify(pid: number): ProcessIdentity | null {
  if (!exists(pid)) return null;
  const startedAt = process.platform === 'linux' ? startOnLinux(pid) : startByPs(pid);
  return startedAt === ENDED ? null : { pid, startedAt };
}

/**
 * Whether this process, and not a later one with the same pid, is alive. If a start time is unknown, only
 * the pids are compared.
 */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid);
  if (now === null) return false;
  return (
    identity.startedAt === null || now.startedAt === null || now.startedAt === identity.startedAt
  );
}

/** Signals the process group that `pid` leads, or `pid` alone if it leads none; false if it ended. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  return signalProcess(-pid, signal) || signalProcess(pid, signal);
}

/** Signals one process; false if it ended or belongs to another user. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

const ENDED = Symbol('ended');

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Field 22 of /proc/PID/stat counts clock ticks since boot; with the boot's id it is unique. */
function startOnLinux(pid: number): string | null | typeof ENDED {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses. It may contain spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return ENDED;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}/${fields[19]}`;
  } catch (error) {
    // Either the process ended meanwhile, or /proc is not mounted.
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return isMissing && !exists(pid) ? ENDED : null;
  }
}

function startByPs(pid: number): string | null {
  const done = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  return done.status === 0 && done.stdout.trim() !== '' ? done.stdout.trim() : null;
}
