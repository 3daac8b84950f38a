import type { ComponentSpec } from './component';
import { isAlive, signalGroup, signalProcess, type ProcessIdentity } from './process-identity';
import { waitUntil } from './wait';

const KILL_WAIT_MS = 3_000;

/**
 * Stops a process: sends the stop signal, after the stop timeout the kill signal, and 3 s later SIGKILL.
 * The stop signal goes to the process alone, because it stops its own children. The other two go to its
 * whole group. `onKill` is called before the kill signal.
 */
export async function stopProcess(
  identity: ProcessIdentity,
  spec: Pick<ComponentSpec, 'name' | 'stopSignal' | 'stopTimeoutMs' | 'killSignal'>,
  onKill: () => void,
): Promise<void> {
  const endsWithin = (timeoutMs: number): Promise<boolean> => ends(identity, spec.name, timeoutMs);
  signalProcess(identity.pid, spec.stopSignal);
  if (await endsWithin(spec.stopTimeoutMs)) return;
  onKill();
  signalGroup(identity.pid, spec.killSignal);
  if (await endsWithin(KILL_WAIT_MS)) return;
  signalGroup(identity.pid, 'SIGKILL');
  await endsWithin(KILL_WAIT_MS);
}

function ends(identity: ProcessIdentity, name: string, timeoutMs: number): Promise<boolean> {
  const wait = { timeoutMs, intervalMs: 20, what: `end of ${name}`, code: 'internal' } as const;
  return waitUntil(() => !isAlive(identity), wait).then(
    () => true,
    () => false,
  );
}
