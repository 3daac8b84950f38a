import { readFileSync } from 'node:fs';

/** Whether a process has ended. A zombie has ended: only its parent has not collected it yet. */
export function isGone(pid: number): boolean {
  try {
    return / [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/, ' '));
  } catch {
    return true;
  }
}

/** The result of `find`; null if it throws, as for a part that is being restarted. */
export function exists<T>(find: () => T): T | null {
  try {
    return find();
  } catch {
    return null;
  }
}
