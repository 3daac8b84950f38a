import { NightshiftError } from '../../core/errors';
import type { Logger } from '../../platform/logger';
import type { RunningProcess } from '../../platform/process';
import { installSignals } from '../../platform/shutdown';

/** A process to run until a signal. */
export interface ServeOptions {
  readonly name: string;
  readonly logger: Logger;
  /** Rejects with the reason of the signal if it gives up because of it. */
  start(signal: AbortSignal): Promise<RunningProcess>;
}

const FORCED_EXIT = 130;

/**
 * Runs a process until a signal, then drains it. A second signal ends it at once. A signal during the
 * start ends a wait for a dependency; otherwise it takes effect when the start is done. A process that ends
 * without a signal is an error.
 *
 * @throws what `start` throws, and what the process ended with
 */
export async function serve({ name, logger, start }: ServeOptions): Promise<void> {
  const starting = new AbortController();
  let stop: (signal: string) => void = () => undefined;
  const stopped = new Promise<string>((resolve) => (stop = resolve));
  const removeSignals = installSignals({
    drain: (signal) => {
      stop(signal);
      starting.abort();
    },
    force: (signal) => {
      logger.warn({ signal }, 'second signal: ending at once');
      process.exit(FORCED_EXIT);
    },
  });
  try {
    const running = await start(starting.signal);
    logger.info({ url: running.url }, `${name} ready`);
    const signal = await Promise.race([stopped, endsUnexpectedly(name, running)]);
    logger.info({ signal }, `${name} draining`);
    await running.close();
    logger.info(`${name} stopped`);
  } catch (error) {
    if (!starting.signal.aborted || error !== starting.signal.reason) throw error;
    logger.info(`${name} stopped before it was ready`);
  } finally {
    removeSignals();
  }
}

function endsUnexpectedly(name: string, running: RunningProcess): Promise<never> {
  if (running.finished === undefined) return new Promise<never>(() => undefined);
  return running.finished.then(() => {
    throw new NightshiftError('internal', `the ${name} ended without a signal`);
  });
}
