import { existsSync, readFileSync } from 'node:fs';

/** Whether a process has ended. A zombie has ended: only its parent has not collected it yet. */
export function isGone(pid: number): boolean {
  if (!existsSync('/proc/self/stat')) return exists(() => process.kill(pid, 0)) === null;
  const state = exists(() => readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/, ' '));
  return state === null || / [ZX] /.test(state);
}

/** The result of `find`; null if it throws, as for a part that is being restarted. */
export function exists<T>(find: () => T): T | null {
  try {
    return find();
  } catch {
    return null;
  }
}
