import type { Logger } from './logger';
import type { RunningProcess } from './process';
import { phaseRecord, runPhases, type ShutdownPhase } from './shutdown';

const RELEASE_MS = 5_000;

/** What a process of ours uses while it opens what it needs. */
export interface ProcessHost {
  readonly logger: Logger;
  /** Registers how to release what was just opened, and how long that may take (5 s). */
  onClose(name: string, run: () => Promise<unknown>, timeoutMs?: number): void;
}

/**
 * Runs a process until `close`. `open` opens everything that it needs and returns the URL that it serves on. What
 * was opened is released in reverse order, also if the start fails. @throws what `open` throws
 */
export async function hostProcess(
  logger: Logger,
  open: (host: ProcessHost) => Promise<string>,
): Promise<RunningProcess> {
  const opened: ShutdownPhase[] = [];
  const onClose: ProcessHost['onClose'] = (name, run, timeoutMs = RELEASE_MS) => {
    opened.unshift({ name, timeoutMs, run: async () => void (await run()) });
  };
  const release = () =>
    runPhases(opened, (phase) => logger.info(phaseRecord(phase), 'shutdown phase'));
  try {
    const url = await open({ logger, onClose });
    let closed: Promise<unknown> | undefined;
    return { url, close: async () => void (await (closed ??= release())) };
  } catch (error) {
    await release();
    throw error;
  }
}
