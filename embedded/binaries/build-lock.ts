import { setTimeout as delay } from 'node:timers/promises';
import { lockFile, type HeldLock } from '../locks/lock-file';

const RETRY_INTERVAL_MS = 500;

/** What a process that waits for a lock needs. */
export interface BuildLockOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called once if another process holds the lock. */
  onWait(holderPid: number): void;
}

/**
 * Runs `work` while no other process of this host holds the lock `file`: two processes must not spend
 * minutes on the same program. There is no time limit, because a build has one of its own, and the lock of
 * a process that died is taken over. @throws the reason of an abort, and what `work` throws
 */
export async function withBuildLock<T>(
  file: string,
  { signal, onWait }: BuildLockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const lock = await takeLock(file, signal, onWait);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

async function takeLock(
  file: string,
  signal: AbortSignal | undefined,
  onWait: (holderPid: number) => void,
): Promise<HeldLock> {
  for (let tries = 0; ; tries++) {
    signal?.throwIfAborted();
    const taken = lockFile(file);
    if (taken.kind === 'held') return taken;
    if (tries === 0) onWait(taken.pid);
    await delay(RETRY_INTERVAL_MS, undefined, signal === undefined ? {} : { signal });
  }
}
