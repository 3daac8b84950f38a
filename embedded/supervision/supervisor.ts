import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { runPhases, type PhaseReport } from '../../platform/shutdown';
import type { ComponentEvent, ComponentSpec } from './component';
import { openComponentLog, type ComponentLog } from './component-log';
import { STOP_ORDER, type RunState } from './run-state';
import { superviseProcess, type SupervisedProcess } from './supervised-process';

export interface SupervisorOptions {
  /** Folder of the parts' log files. */
  readonly logs: string;
  /** Where the living parts are noted for the next supervisor. */
  readonly state: RunState;
  onLine(part: string, line: string): void;
  onEvent(part: string, event: ComponentEvent): void;
}

/** The parts of one stack: started one by one, stopped together in order. */
export interface Supervisor {
  /** Starts a part and waits until it is ready. @throws internal with the part's last log lines */
  launch(spec: ComponentSpec): Promise<void>;
  /** Rejects when a part died too often; pending otherwise. */
  readonly failed: Promise<never>;
  /** Drains the parts in {@link STOP_ORDER}; `report` hears of each one's end. Idempotent. */
  stop(report: (phase: PhaseReport) => void): Promise<void>;
  /** Ends every part at once; nothing is awaited. */
  kill(): void;
}

interface Member {
  readonly spec: ComponentSpec;
  readonly part: SupervisedProcess;
  readonly log: ComponentLog;
}

/** How much longer than its own limits a part's phase may take: two kills follow a late stop. */
const KILL_MARGIN_MS = 10_000;

/** An empty crew. */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const members: Member[] = [];
  let stopping: Promise<void> | null = null;
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  failed.catch(() => undefined);

  const note = (): void => {
    const living = members.flatMap(({ spec, part }) => {
      const identity = part.identity();
      const { name, stopSignal, stopTimeoutMs } = spec;
      return identity === null ? [] : [{ ...identity, name, stopSignal, stopTimeoutMs }];
    });
    options.state.write(living);
  };

  const launch = async (spec: ComponentSpec): Promise<void> => {
    if (stopping !== null) throw new NightshiftError('internal', 'the stack is being stopped');
    const { name } = spec;
    const log = openComponentLog(join(options.logs, `${name}.log`), (line) =>
      options.onLine(name, line),
    );
    const part = superviseProcess(spec, {
      log,
      onEvent: (event) => options.onEvent(name, event),
      onProcess: () => queueMicrotask(note),
    });
    members.push({ spec, part, log });
    note();
    part.failed.catch(fail);
    await part.ready;
  };

  const stopAll = async (report: (phase: PhaseReport) => void): Promise<void> => {
    const inOrder = [...members].sort(
      (a, b) => STOP_ORDER.indexOf(a.spec.name) - STOP_ORDER.indexOf(b.spec.name),
    );
    const phases = inOrder.map(({ spec, part }) => ({
      name: spec.name,
      timeoutMs: spec.stopTimeoutMs + KILL_MARGIN_MS,
      run: () => part.stop(),
    }));
    await runPhases(phases, report);
    for (const { log } of members) log.close();
    options.state.clear();
  };

  return {
    launch,
    failed,
    stop: (report) => (stopping ??= stopAll(report)),
    kill: () => {
      stopping ??= Promise.resolve();
      for (const { part } of members) part.kill();
    },
  };
}
