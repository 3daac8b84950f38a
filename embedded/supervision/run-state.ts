import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inStopOrder } from './component';
import { isAlive, signalGroup, signalProcess, type ProcessIdentity } from './process-identity';
import { waitUntil } from './wait';

/** A process that a supervisor of this data directory started. */
export interface RecordedProcess extends ProcessIdentity {
  readonly name: string;
  readonly stopSignal: NodeJS.Signals;
  readonly stopTimeoutMs: number;
}

/** The record of living components, which a later supervisor finds if this one is killed. */
export interface RunState {
  write(processes: readonly RecordedProcess[]): void;
  read(): RecordedProcess[];
  clear(): void;
}

/** The record in `folder`. It is replaced as a whole, so a reader never sees half of it. */
export function openRunState(folder: string): RunState {
  const file = join(folder, 'processes.json');
  return {
    write(processes) {
      const draft = `${file}.${process.pid}`;
      try {
        writeFileSync(draft, JSON.stringify(processes), { mode: 0o600 });
        renameSync(draft, file);
      } catch {
        // A full disk or a deleted folder must not stop the supervisor: only the next start needs this.
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

const KILL_WAIT_MS = 5_000;

/**
 * Stops the components that a killed supervisor left running, in stop order. `say` is called before
 * each.
 *
 * Orphans are stopped and not adopted. The supervisor is not their parent, so it would never see them
 * exit, and it could not restart them with the settings and ports of this start. Stopping them costs a
 * few seconds and leaves one way to run a component: as our own child. Only processes with the recorded
 * start time are stopped, because after a reboot another process may have the same pid
 * (docs/design/embedded-stack.md#orphans).
 *
 * @returns how many there were
 */
export async function stopOrphans(
  state: RunState,
  say: (process: RecordedProcess) => void,
): Promise<number> {
  const living = state.read().filter((process) => isAlive(process));
  for (const orphan of inStopOrder(living, ({ name }) => name)) {
    say(orphan);
    await stopOrphan(orphan);
  }
  state.clear();
  return living.length;
}

async function stopOrphan(orphan: RecordedProcess): Promise<void> {
  signalProcess(orphan.pid, orphan.stopSignal);
  const wait = { intervalMs: 50, what: `end of ${orphan.name}`, code: 'internal' } as const;
  const hasEnded = (): boolean => !isAlive(orphan);
  try {
    await waitUntil(hasEnded, { ...wait, timeoutMs: orphan.stopTimeoutMs });
  } catch {
    signalGroup(orphan.pid, 'SIGKILL');
    await waitUntil(hasEnded, { ...wait, timeoutMs: KILL_WAIT_MS });
  }
}
