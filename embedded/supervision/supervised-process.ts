import { spawn } from 'node:child_process';
import { NightshiftError } from '../../core/errors';
import type { ComponentEvent, ComponentSpec } from './component';
import type { ComponentLog } from './component-log';
import {
  identify,
  isAlive,
  signalGroup,
  signalProcess,
  type ProcessIdentity,
} from './process-identity';
import { waitUntil } from './wait';

/**
 * Five deaths within 30 s before it was ever ready: it will not get better by itself. One that was
 * ready and then died, however often, was killed, or met work that kills it: others' work goes on.
 */
const MAX_DEATHS = 5;
const DEATHS_WITHIN_MS = 30_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
const SHOWN_LINES = 15;

/** A program that is started again when it dies, until it dies too often without being ready. */
export interface SupervisedProcess {
  readonly name: string;
  /** The living process, `null` between two lives. */
  identity(): ProcessIdentity | null;
  /** Settles when the part is ready for the first time. @throws internal with its last log lines */
  readonly ready: Promise<void>;
  /** Rejects when the part died too often without being ready; otherwise pending. */
  readonly failed: Promise<never>;
  /** Stops for good: gracefully, then by force. Idempotent. */
  stop(): Promise<void>;
  /** Ends the process group now; nothing is awaited. */
  kill(): void;
}

export interface SuperviseOptions {
  readonly log: ComponentLog;
  onEvent(event: ComponentEvent): void;
  /** Called whenever `identity()` changed. */
  onProcess(): void;
}

/** Starts a part in a process group of its own and starts it again whenever it dies. */
export function superviseProcess(
  spec: ComponentSpec,
  options: SuperviseOptions,
): SupervisedProcess {
  return new ProcessSupervision(spec, options);
}

class ProcessSupervision implements SupervisedProcess {
  readonly name: string;
  readonly ready: Promise<void>;
  readonly failed: Promise<never>;
  readonly #spec: ComponentSpec;
  readonly #options: SuperviseOptions;
  readonly #unreadyDeathsAtMs: number[] = [];
  #identity: ProcessIdentity | null = null;
  #restart: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | null = null;
  #fail: (error: NightshiftError) => void = () => undefined;
  #hasFailed = false;
  /** Of the living process. */
  #wasReady = false;

  constructor(spec: ComponentSpec, options: SuperviseOptions) {
    this.name = spec.name;
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
    child.once('exit', (code, signal) => this.#died(howItEnded(code, signal)));
    child.once('error', () => undefined);
    this.#identity = identify(pid) ?? { pid, startedAt: null };
    this.#options.onProcess();
    this.#options.onEvent({ kind: 'started', pid });
    void this.#watchReadiness(pid);
  }

  /** Notes whether the process was ready before it died. */
  async #watchReadiness(pid: number): Promise<void> {
    const { readyTimeoutMs: timeoutMs } = this.#spec;
    const isOver = (): boolean => this.#identity?.pid !== pid || this.#stopping !== null;
    const ready = async (): Promise<boolean> => isOver() || (await this.#spec.isReady(pid));
    const wait = { timeoutMs, what: `readiness of ${this.name}`, code: 'internal' } as const;
    await waitUntil(ready, wait).catch(() => undefined);
    if (!isOver()) this.#wasReady = true;
  }

  #died(how: string): void {
    this.#identity = null;
    const wasReady = this.#wasReady;
    this.#wasReady = false;
    this.#options.onProcess();
    if (this.#stopping !== null || this.#hasFailed) return;
    const nowMs = performance.now();
    if (!wasReady) this.#unreadyDeathsAtMs.push(nowMs);
    const isRecent = (atMs: number): boolean => nowMs - atMs < DEATHS_WITHIN_MS;
    const unready = this.#unreadyDeathsAtMs.filter(isRecent).length;
    if (unready >= MAX_DEATHS) {
      this.#giveUp(
        `${this.name} died ${unready} times within ${DEATHS_WITHIN_MS / 1_000} s (${how})`,
      );
      return;
    }
    const doublings = Math.max(0, unready - 1);
    const restartInMs = Math.min(FIRST_PAUSE_MS * 2 ** doublings, LONGEST_PAUSE_MS);
    this.#options.onEvent({ kind: 'died', how, restartInMs });
    this.#restart = setTimeout(() => this.#start(), restartInMs);
  }

  #giveUp(what: string): void {
    this.#hasFailed = true;
    this.#fail(this.#withLog(what));
  }

  #withLog(what: string): NightshiftError {
    const { log } = this.#options;
    const lines = log.lastLines(SHOWN_LINES).map((line) => `  ${line}`);
    const end = lines.length === 0 ? 'It wrote nothing.' : `Its last lines:\n${lines.join('\n')}`;
    return new NightshiftError('internal', `${what}. ${end}\nThe whole log: ${log.path}`);
  }

  async #untilReady(): Promise<void> {
    const startedAtMs = performance.now();
    const { readyTimeoutMs } = this.#spec;
    const waited = waitUntil(() => this.#isReady(), {
      timeoutMs: readyTimeoutMs,
      what: `start of ${this.name}`,
      code: 'internal',
    }).catch((cause: unknown) => {
      if (this.#stopping !== null) throw cause;
      throw this.#withLog(`${this.name} was not ready within ${readyTimeoutMs / 1_000} s`);
    });
    await Promise.race([waited, this.failed]);
    const tookMs = Math.round(performance.now() - startedAtMs);
    this.#options.onEvent({ kind: 'ready', tookMs });
  }

  async #isReady(): Promise<boolean> {
    if (this.#stopping !== null)
      throw new NightshiftError('internal', `${this.name} is being stopped`);
    const pid = this.identity()?.pid;
    return pid !== undefined && this.#spec.isReady(pid);
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#restart);
    const identity = this.identity();
    if (identity === null) return;
    const { stopSignal, stopTimeoutMs, killSignal } = this.#spec;
    // The process alone first: what it started itself is its own to stop.
    signalProcess(identity.pid, stopSignal);
    if (await this.#gone(identity, stopTimeoutMs)) return;
    this.#options.onEvent({ kind: 'killed', afterMs: stopTimeoutMs });
    signalGroup(identity.pid, killSignal);
    if (await this.#gone(identity, KILL_WAIT_MS)) return;
    signalGroup(identity.pid, 'SIGKILL');
    await this.#gone(identity, KILL_WAIT_MS);
  }

  async #gone(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
    const gone = (): boolean => !isAlive(identity);
    const wait = {
      timeoutMs,
      intervalMs: 20,
      what: `end of ${this.name}`,
      code: 'internal',
    } as const;
    return waitUntil(gone, wait).then(
      () => true,
      () => false,
    );
  }
}

const KILL_WAIT_MS = 3_000;

function howItEnded(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `exit status ${code}` : `signal ${signal}`;
}
