import { readFileSync } from 'node:fs';

/** Files and connections of a process besides those of its clients: database, object store, Temporal, logs. */
const RESERVED = 256;

/**
 * How many files and connections this process may have open (`ulimit -n`); `null` if that is unlimited, or if
 * the system does not say. Node raises the soft limit to the hard one when it starts.
 *
 * @param limitsFile a file like `/proc/self/limits`
 */
export function openFilesLimit(limitsFile = '/proc/self/limits'): number | null {
  try {
    const lines = readFileSync(limitsFile, 'utf8').split('\n');
    const line = lines.find((one) => one.startsWith('Max open files'));
    const soft = Number(line?.split(/ +/)[3]);
    return Number.isInteger(soft) ? soft : null;
  } catch {
    return null;
  }
}

/**
 * A warning if so many connections do not fit into the limit of open files; `null` if they do. Beyond that
 * limit the system refuses connections without an answer, before `max_connections` is reached.
 *
 * @param setting name of the setting that allows `connections`
 */
export function openFilesFault(
  limit: number | null,
  setting: string,
  connections: number,
): string | null {
  if (limit === null || limit >= connections + RESERVED) return null;
  return `This process may open ${limit} files, but ${setting} allows ${connections} connections, and ${RESERVED} files are needed for everything else. Raise the limit of open files (ulimit -n), or lower ${setting}.`;
}
