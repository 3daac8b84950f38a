import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

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

/** Which of these processes has a TCP connection over IPv4 from this local port; null if none has. Linux only. */
export function ownerOfPort(port: number, pids: readonly number[]): number | null {
  const local = port.toString(16).toUpperCase().padStart(4, '0');
  const inodes = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address]) => address?.endsWith(`:${local}`))
    .map((columns) => `socket:[${columns[9]}]`);
  return pids.find((pid) => openFiles(pid).some((name) => inodes.includes(name))) ?? null;
}

/** What the file descriptors of a process refer to: paths of files, and names of sockets. Linux only. */
export function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  const descriptors = exists(() => readdirSync(folder)) ?? [];
  return descriptors.flatMap((fd) => exists(() => [readlinkSync(`${folder}/${fd}`)]) ?? []);
}
