import { readFileSync } from 'node:fs';

/** Whether a process has ended; a zombie has: its parent will hear of it. */
export function isGone(pid: number): boolean {
  try {
    return / [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/, ' '));
  } catch {
    return true;
  }
}

/** What `find` answers, null while it throws: a part between two lives. */
export function exists<T>(find: () => T): T | null {
  try {
    return find();
  } catch {
    return null;
  }
}
