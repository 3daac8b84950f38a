/** One process of a worker: the parent forks it with this module as its program. */
import { isNightshiftError } from '../../core/errors';
import { BorrowedPermits } from '../../inference/loans/borrowed-permits';
import type { Config } from '../../platform/config';
import { createLogger } from '../../platform/logger';
import { runWorker } from '../main';
import type { FromProcess, ToProcess } from './messages';

function say(message: FromProcess, onSent?: () => void): void {
  process.send?.(message, undefined, undefined, onSent);
}

/** Whoever ends the parent ends this process: nobody else knows what it may send. */
function endWithParent(): void {
  process.exit(1);
}

/** The terminal sends SIGINT and SIGHUP to all processes. The parent decides what follows. */
function leaveSignalsToParent(drain: () => void): void {
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.on('SIGTERM', drain);
}

async function work(config: Config, borrowed: BorrowedPermits, drain: AbortSignal): Promise<void> {
  const running = await runWorker(config, {
    signal: drain,
    permits: borrowed,
    onStarting: (reason) => say({ kind: 'starting', reason }),
  });
  say({ kind: 'ready', url: running.url });
  const asked = new Promise<void>((resolve) => {
    if (drain.aborted) resolve();
    drain.addEventListener('abort', () => resolve(), { once: true });
  });
  await Promise.race([asked, running.finished]);
  await running.close();
}

function run(config: Config, borrowed: BorrowedPermits, drain: AbortSignal): void {
  work(config, borrowed, drain).then(
    () => process.exit(0),
    (error: unknown) => {
      if (drain.aborted && error === drain.reason) process.exit(0);
      createLogger(config.log, 'worker').fatal({ err: error }, 'worker process ends');
      const code = isNightshiftError(error) ? error.code : 'internal';
      const message = error instanceof Error ? error.message : String(error);
      say({ kind: 'failed', code, message }, () => process.exit(1));
    },
  );
}

const borrowed = new BorrowedPermits((message) => say(message));
const drain = new AbortController();
leaveSignalsToParent(() => drain.abort());
process.on('disconnect', endWithParent);
process.on('message', (message: ToProcess) => {
  if (message.kind === 'run') run(message.config, borrowed, drain.signal);
  else if (message.kind === 'drain') drain.abort();
  else borrowed.onLoan(message);
});
