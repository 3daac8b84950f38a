import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, signalGroup, signalProcess, type ProcessIdentity } from './process-identity';
import { waitUntil } from './wait';

/** A process that some supervisor of this data directory started. */
export interface RecordedProcess extends ProcessIdentity {
  readonly name: string;
  readonly stopSignal: NodeJS.Signals;
  readonly stopTimeoutMs: number;
}

/** Notes the living parts, so that a supervisor that is killed leaves no unknown processes behind. */
export interface RunState {
  write(processes: readonly RecordedProcess[]): void;
  read(): RecordedProcess[];
  clear(): void;
}

/** The notes in `folder`; replaced as a whole, so that a reader never meets half of them. */
export function openRunState(folder: string): RunState {
  const file = join(folder, 'processes.json');
  return {
    write(processes) {
      const draft = `${file}.${process.pid}`;
      try {
        writeFileSync(draft, JSON.stringify(processes), { mode: 0o600 });
        renameSync(draft, file);
      } catch {
        // A full disk or a deleted folder must not end the supervisor: the notes help the next one only.
      }
    },
    read: () => parse(file),
    clear: () => rmSync(file, { force: true }),
  };
}

function parse(file: string): RecordedProcess[] {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Array.isArray(parsed) ? (parsed as RecordedProcess[]) : [];
  } catch {
    return [];
  }
}

/** Order in which parts stop: whoever uses another goes first (design §6). */
export const STOP_ORDER = ['api', 'worker', 'simulator', 'temporal', 'postgres'];

/**
 * Stops what a killed supervisor left behind, in the order of a drain; `say` hears of each.
 *
 * @returns how many there were
 */
export async function stopOrphans(
  state: RunState,
  say: (process: RecordedProcess) => void,
): Promise<number> {
  const left = state
    .read()
    .filter((process) => isAlive(process))
    .sort((a, b) => STOP_ORDER.indexOf(a.name) - STOP_ORDER.indexOf(b.name));
  for (const orphan of left) {
    say(orphan);
    await stopOrphan(orphan);
  }
  state.clear();
  return left.length;
}

async function stopOrphan(orphan: RecordedProcess): Promise<void> {
  signalProcess(orphan.pid, orphan.stopSignal);
  const wait = { intervalMs: 50, what: `end of ${orphan.name}`, code: 'internal' } as const;
  const gone = (): boolean => !isAlive(orphan);
  try {
    await waitUntil(gone, { ...wait, timeoutMs: orphan.stopTimeoutMs });
  } catch {
    signalGroup(orphan.pid, 'SIGKILL');
    await waitUntil(gone, { ...wait, timeoutMs: 5_000 });
  }
}
