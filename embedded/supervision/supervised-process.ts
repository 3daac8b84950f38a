import { spawn } from 'node:child_process';
import { NightshiftError } from '../../core/errors';
import type { ComponentEvent, ComponentSpec } from './component';
import { withLastLines, type ComponentLog } from './component-log';
import { identify, signalGroup, type ProcessIdentity } from './process-identity';
import type { RestartPolicy } from './restart-policy';
import { stopProcess } from './stop-process';
import { waitUntil } from './wait';

const SHOWN_LINES = 15;

/** A program that is restarted when it dies, until the restart policy gives it up. */
export interface SupervisedProcess {
  /** The living process; `null` between a death and the restart. */
  identity(): ProcessIdentity | null;
  /** Resolves when the component is ready for the first time. @throws internal with its last log lines */
  readonly ready: Promise<void>;
  /** Rejects when the component is given up; pending otherwise. */
  readonly failed: Promise<never>;
  /** Stops for good: gracefully, then by force. Idempotent. */
  stop(): Promise<void>;
  /** Kills the process group and does not wait. */
  kill(): void;
}

/** What a supervised process reports, and where it logs. */
export interface SuperviseOptions {
  readonly log: ComponentLog;
  readonly decideRestart: RestartPolicy;
  onEvent(event: ComponentEvent): void;
  /** Called whenever `identity()` has changed. */
  onProcess(): void;
}

/** Starts a component in a process group of its own, and restarts it when it dies. */
export function superviseProcess(
  spec: ComponentSpec,
  options: SuperviseOptions,
): SupervisedProcess {
  return new ProcessSupervision(spec, options);
}

class ProcessSupervision implements SupervisedProcess {
  readonly ready: Promise<void>;
  readonly failed: Promise<never>;
  readonly #spec: ComponentSpec;
  readonly #options: SuperviseOptions;
  #identity: ProcessIdentity | null = null;
  #restart: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | null = null;
  #fail: (error: NightshiftError) => void = () => undefined;
  #hasFailed = false;
  /** Whether the living process has been ready. */
  #wasReady = false;

  constructor(spec: ComponentSpec, options: SuperviseOptions) {
    this.#spec = spec;
    this.#options = options;
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    this.failed.catch(() => undefined);
    this.#start();
    this.ready = this.#untilReady();
    this.ready.catch(() => undefined);
  }

  identity(): ProcessIdentity | null {
    return this.#identity;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  kill(): void {
    this.#stopping ??= Promise.resolve();
    clearTimeout(this.#restart);
    const pid = this.#identity?.pid;
    if (pid !== undefined) signalGroup(pid, this.#spec.killSignal);
  }

  #start(): void {
    const { command, args, env, cwd, uid, gid } = this.#spec;
    const { fd } = this.#options.log;
    const child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', fd, fd],
      env,
      ...(cwd === undefined ? {} : { cwd }),
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
    });
    const { pid } = child;
    if (pid === undefined) {
      child.once('error', (error) => this.#died(error.message));
      return;
    }
    child.once('exit', (code, signal) =>
      this.#died(signal === null ? `exit status ${code}` : `signal ${signal}`),
    );
    child.once('error', () => undefined);
    this.#identity = identify(pid) ?? { pid, startedAt: null };
    this.#options.onProcess();
    this.#options.onEvent({ kind: 'started', pid });
    void this.#watchReadiness(pid);
  }

  /** Remembers for the restart policy whether this process was ready before it died. */
  async #watchReadiness(pid: number): Promise<void> {
    const { name, readyTimeoutMs: timeoutMs } = this.#spec;
    const isOver = (): boolean => this.#identity?.pid !== pid || this.#stopping !== null;
    const isDecided = async (): Promise<boolean> => isOver() || (await this.#spec.isReady(pid));
    const wait = { timeoutMs, what: `readiness of ${name}`, code: 'internal' } as const;
    await waitUntil(isDecided, wait).catch(() => undefined);
    if (!isOver()) this.#wasReady = true;
  }

  #died(how: string): void {
    this.#identity = null;
    const wasReady = this.#wasReady;
    this.#wasReady = false;
    this.#options.onProcess();
    if (this.#stopping !== null || this.#hasFailed) return;
    const decision = this.#options.decideRestart(wasReady, performance.now());
    if (decision.kind === 'give up') {
      const { deaths, withinMs } = decision;
      this.#hasFailed = true;
      const what = `${this.#spec.name} died ${deaths} times within ${withinMs / 1_000} s (${how})`;
      this.#fail(this.#errorWithLog(what));
      return;
    }
    this.#options.onEvent({ kind: 'died', how, restartInMs: decision.inMs });
    this.#restart = setTimeout(() => this.#start(), decision.inMs);
  }

  #errorWithLog(what: string): NightshiftError {
    return new NightshiftError('internal', withLastLines(what, this.#options.log, SHOWN_LINES));
  }

  /** Waits until the component is ready for the first time, even if it needs restarts for that. */
  async #untilReady(): Promise<void> {
    const startedAtMs = performance.now();
    const { name, readyTimeoutMs: timeoutMs } = this.#spec;
    const wait = { timeoutMs, what: `start of ${name}`, code: 'internal' } as const;
    const waited = waitUntil(() => this.#isReady(), wait).catch((cause: unknown) => {
      if (this.#stopping !== null) throw cause;
      throw this.#errorWithLog(`${name} was not ready within ${timeoutMs / 1_000} s`);
    });
    await Promise.race([waited, this.failed]);
    const tookMs = Math.round(performance.now() - startedAtMs);
    this.#options.onEvent({ kind: 'ready', tookMs });
  }

  async #isReady(): Promise<boolean> {
    if (this.#stopping !== null) {
      throw new NightshiftError('internal', `${this.#spec.name} is being stopped`);
    }
    const pid = this.#identity?.pid;
    return pid !== undefined && this.#spec.isReady(pid);
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#restart);
    const identity = this.#identity;
    if (identity === null) return;
    await stopProcess(identity, this.#spec, () =>
      this.#options.onEvent({ kind: 'killed', afterMs: this.#spec.stopTimeoutMs }),
    );
  }
}
