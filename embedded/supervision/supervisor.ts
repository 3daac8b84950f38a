import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { runPhases, type PhaseReport } from '../../platform/shutdown';
import { inStopOrder, type ComponentEvent, type ComponentSpec } from './component';
import { openComponentLog, type ComponentLog } from './component-log';
import { createRestartPolicy, type RestartPolicy } from './restart-policy';
import type { RunState } from './run-state';
import { superviseProcess, type SupervisedProcess } from './supervised-process';

/** What a supervisor needs from its stack. */
export interface SupervisorOptions {
  /** Folder of the components' log files. */
  readonly logs: string;
  /** Record of the living components, for the next supervisor. */
  readonly state: RunState;
  onLine(component: string, line: string): void;
  onEvent(component: string, event: ComponentEvent): void;
  /** Makes the restart policy of each component. Default: {@link createRestartPolicy}. */
  readonly restartPolicy?: () => RestartPolicy;
}

/** The components of one stack: started one by one, stopped together in order. */
export interface Supervisor {
  /** Starts a component and waits until it is ready. @throws internal with its last log lines */
  launch(spec: ComponentSpec): Promise<void>;
  /** Rejects when a component died too often; pending otherwise. */
  readonly failed: Promise<never>;
  /** Stops the components in stop order and reports each one's end. Idempotent. */
  stop(report: (phase: PhaseReport) => void): Promise<void>;
  /** Kills every component at once and waits for none. */
  kill(): void;
}

interface Member {
  readonly spec: ComponentSpec;
  readonly process: SupervisedProcess;
  readonly log: ComponentLog;
}

/** How much longer than its stop timeout the stop of a component may take: up to two kills follow. */
const KILL_MARGIN_MS = 10_000;

/** A supervisor without components. */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const members: Member[] = [];
  let stopping: Promise<void> | null = null;
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  failed.catch(() => undefined);

  const launch = async (spec: ComponentSpec): Promise<void> => {
    if (stopping !== null) throw new NightshiftError('internal', 'the stack is being stopped');
    const { name } = spec;
    const onLine = (line: string): void => options.onLine(name, line);
    const log = openComponentLog(join(options.logs, `${name}.log`), onLine);
    const process = superviseProcess(spec, {
      log,
      decideRestart: (options.restartPolicy ?? createRestartPolicy)(),
      onEvent: (event) => options.onEvent(name, event),
      // Deferred, because the first call comes before the component is in `members`.
      onProcess: () => queueMicrotask(() => record(members, options.state)),
    });
    members.push({ spec, process, log });
    record(members, options.state);
    process.failed.catch(fail);
    await process.ready;
  };

  return {
    launch,
    failed,
    stop: (report) => (stopping ??= stopAll(members, options.state, report)),
    kill: () => {
      stopping ??= Promise.resolve();
      for (const { process, log } of members) {
        process.kill();
        log.close();
      }
    },
  };
}

function record(members: readonly Member[], state: RunState): void {
  const living = members.flatMap(({ spec, process }) => {
    const identity = process.identity();
    const { name, stopSignal, stopTimeoutMs } = spec;
    return identity === null ? [] : [{ ...identity, name, stopSignal, stopTimeoutMs }];
  });
  state.write(living);
}

async function stopAll(
  members: readonly Member[],
  state: RunState,
  report: (phase: PhaseReport) => void,
): Promise<void> {
  const phases = inStopOrder(members, ({ spec }) => spec.name).map(({ spec, process }) => ({
    name: spec.name,
    timeoutMs: spec.stopTimeoutMs + KILL_MARGIN_MS,
    run: () => process.stop(),
  }));
  await runPhases(phases, report);
  for (const { log } of members) log.close();
  state.clear();
}
