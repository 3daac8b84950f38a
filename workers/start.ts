/* eslint-disable @typescript-eslint/no-require-imports -- the parent of several processes must not load what only
   they need: a native library and a compiler; this is the only typed and synchronous way. */
import type { Config } from '../platform/config';
import type { RunningProcess, StartOptions } from '../platform/process';
import type * as Main from './main';
import { processCount } from './processes/process-count';
import type * as Parent from './processes/parent';

/**
 * Runs a worker until it is closed: in this process if `worker.processes` is 1, else as so many processes under this
 * one (docs/design/worker-processes.md).
 * @throws what `runWorker` and `runWorkerProcesses` throw
 */
export function startWorker(
  config: Config,
  options: Pick<StartOptions, 'signal'>,
): Promise<RunningProcess> {
  const count = processCount(config.worker.processes);
  if (count === 1) return (require('./main') as typeof Main).runWorker(config, options);
  const { runWorkerProcesses } = require('./processes/parent') as typeof Parent;
  return runWorkerProcesses(config, count, options);
}
