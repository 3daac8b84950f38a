import { NightshiftError } from '../../core/errors';
import type { Logger } from '../../platform/logger';
import type { RunningProcess } from '../../platform/process';
import { installSignals } from '../../platform/shutdown';

export interface ServeOptions {
  readonly name: string;
  readonly logger: Logger;
  start(): Promise<RunningProcess>;
}

const FORCED_EXIT = 130;

/**
 * Runs a process until a signal (it drains, a second signal ends it at once) or until it ends by
 * itself, which is an error. A signal during the start is obeyed when the start is done.
 *
 * @throws what `start` throws, and what the process ended with
 */
export async function serve({ name, logger, start }: ServeOptions): Promise<void> {
  let stop: (signal: string) => void = () => undefined;
  const stopped = new Promise<string>((resolve) => (stop = resolve));
  const removeSignals = installSignals({
    drain: stop,
    force: (signal) => {
      logger.warn({ signal }, 'second signal: ending at once');
      process.exit(FORCED_EXIT);
    },
  });
  try {
    const running = await start();
    logger.info({ url: running.url }, `${name} ready`);
    const signal = await Promise.race([stopped, endedByItself(name, running)]);
    logger.info({ signal }, `${name} draining`);
    await running.close();
    logger.info(`${name} stopped`);
  } finally {
    removeSignals();
  }
}

function endedByItself(name: string, running: RunningProcess): Promise<never> {
  if (running.finished === undefined) return new Promise<never>(() => undefined);
  return running.finished.then(() => {
    throw new NightshiftError('internal', `the ${name} ended by itself`);
  });
}
