import { NightshiftError } from '../core/errors';
import type { ConfigSources } from '../platform/config';
import type { PhaseReport } from '../platform/shutdown';
import { openDataDir } from './data-dir';
import { lockDataDir } from './locks/data-dir-lock';
import type { HeldLock } from './locks/lock-file';
import { createPortPicker } from './locks/ports';
import type { StoreKind } from './s3/store-kind';
import { planStack } from './stack-plan';
import { startComponents, type StackAddresses } from './start-components';
import type { ComponentEvent } from './supervision/component';
import { openRunState, stopOrphans } from './supervision/run-state';
import { createSupervisor, type Supervisor } from './supervision/supervisor';

/** What to start, and callbacks for messages and events. */
export interface StackOptions {
  readonly dataDir: string;
  readonly sources: ConfigSources;
  /** Whether to start the simulator if no model server is configured. */
  readonly simulator: boolean;
  /** Settings that the simulator's base URL is part of; not asked for without a simulator. */
  readonly simulatorSettings?: ((url: string) => Record<string, unknown>) | undefined;
  /** Whether to start the gateway in front of the simulator, or of the pools that are configured. */
  readonly gateway: boolean;
  /** Where to keep objects if the settings do not say so; without it, where they are already. */
  readonly store?: StoreKind | undefined;
  /** Whether the API must get its configured port. */
  readonly apiPort: 'exactly' | 'next free';
  /** Starts Temporal without its UI, which has no authentication. */
  readonly headless?: boolean;
  /** Shows one sentence on the terminal. */
  say(message: string): void;
  /** A line that a component logged. */
  onLine(component: string, line: string): void;
  onEvent(component: string, event: ComponentEvent): void;
}

/** All components of `dev` and `demo`, as one thing to start and stop. */
export interface Stack {
  /**
   * Starts everything and waits until it is ready. If it fails, call `stop`.
   *
   * @throws config_invalid, data_dir_in_use, data_dir_unusable, port_in_use, temporal_unavailable,
   *   postgres_unavailable, internal
   */
  start(): Promise<StackAddresses>;
  /** Rejects when a component died too often. */
  readonly failed: Promise<never>;
  /** Drains the components in stop order, then releases ports and data directory. Idempotent. */
  stop(report?: (phase: PhaseReport) => void): Promise<void>;
  /** Kills every component, and releases ports and data directory. */
  kill(): void;
}

/** A stack in a data directory. Nothing happens before `start`. */
export function createStack(options: StackOptions): Stack {
  const abort = new AbortController();
  const picker = createPortPicker();
  let started: { lock: HeldLock; supervisor: Supervisor } | null = null;
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  failed.catch(() => undefined);

  const start = async (): Promise<StackAddresses> => {
    const dir = openDataDir(options.dataDir);
    const lock = lockDataDir(dir.path);
    const state = openRunState(dir.run);
    const supervisor = createSupervisor({ ...options, logs: dir.logs, state });
    started = { lock, supervisor };
    supervisor.failed.catch(fail);
    await stopOrphans(state, ({ name, pid }) =>
      options.say(`stopping ${name} (process ${pid}), which an earlier run left behind`),
    );
    const plan = await planStack({ ...options, dir, picker });
    return startComponents({ ...options, dir, plan, supervisor, signal: abort.signal });
  };

  const release = (): void => {
    picker.release();
    started?.lock.release();
  };

  return {
    start,
    failed,
    stop: async (report = () => undefined) => {
      abort.abort(new NightshiftError('internal', 'the stack is being stopped'));
      await started?.supervisor.stop(report);
      release();
    },
    kill: () => {
      abort.abort(new NightshiftError('internal', 'the stack is being stopped'));
      started?.supervisor.kill();
      release();
    },
  };
}
