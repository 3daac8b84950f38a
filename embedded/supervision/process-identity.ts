import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque: boot and start time of the process; `null` where the system does not tell. */
  readonly startedAt: string | null;
}

/** Identity of a living process, or `null` where there is none (a zombie counts as gone). */
export function identify(pid: number): ProcessIdentity | null {
  if (!exists(pid)) return null;
  const startedAt = process.platform === 'linux' ? startOnLinux(pid) : startByPs(pid);
  return startedAt === GONE ? null : { pid, startedAt };
}

/** Whether the process noted as `identity` still lives. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid);
  if (now === null) return false;
  return (
    identity.startedAt === null || now.startedAt === null || now.startedAt === identity.startedAt
  );
}

/** Sends `signal` to the whole process group that `pid` leads, or to it alone; false where it is gone. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  return signalProcess(-pid, signal) || signalProcess(pid, signal);
}

const GONE = Symbol('gone');

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Field 22 of /proc/PID/stat counts ticks since boot: unique together with the boot's id. */
function startOnLinux(pid: number): string | null | typeof GONE {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses and may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return GONE;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}/${fields[19]}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && exists(process.pid) && !exists(pid)
      ? GONE
      : null;
  }
}

function startByPs(pid: number): string | null {
  const done = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  return done.status === 0 && done.stdout.trim() !== '' ? done.stdout.trim() : null;
}

/** Sends `signal`; false where the process is gone (or is not ours). */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
