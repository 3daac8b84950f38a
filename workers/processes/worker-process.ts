import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import type { LoanAccount, LoanDesk } from '../../inference/loans/loan-desk';
import type { Config } from '../../platform/config';
import type { Logger } from '../../platform/logger';
import { packageRoot } from '../../platform/package-root';
import type { FromProcess, ToProcess } from './messages';

/** What one process of a worker needs. */
export interface WorkerProcessOptions {
  /** Its place among the processes of the worker, from 1. */
  readonly number: number;
  readonly config: Config;
  readonly desk: LoanDesk;
  readonly logger: Logger;
  /** It waits for something that it depends on. */
  readonly onStarting: (reason: string) => void;
  /** It died after its first start, and will be started again. */
  readonly onDied: () => void;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** One process of a worker, which is started again whenever it dies. */
export class WorkerProcess {
  readonly number: number;
  readonly #o: WorkerProcessOptions;
  #child: ChildProcess | null = null;
  /** Where it serves health and metrics; null while it does not run. */
  #url: string | null = null;
  #failure: NightshiftError | null = null;
  /** Deaths in a row before it was ready. */
  #failedStarts = 0;
  #restart: NodeJS.Timeout | null = null;
  #isClosing = false;
  #onReady: () => void = () => undefined;
  #onEnded: (error: NightshiftError) => void = () => undefined;

  constructor(options: WorkerProcessOptions) {
    this.number = options.number;
    this.#o = options;
  }

  get url(): string | null {
    return this.#url;
  }

  /** Starts it for the first time. @throws what its start failed with */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onReady = resolve;
      this.#onEnded = reject;
      this.#fork();
    });
  }

  /** Lets it finish its requests, and kills it after `timeoutMs`. */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    const child = this.#child;
    if (child === null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    send(child, { kind: 'drain' });
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    await ended;
    clearTimeout(timer);
  }

  #fork(): void {
    const { desk, config } = this.#o;
    const child = fork(program(), [], { serialization: 'advanced' });
    const account = desk.open((message) => send(child, message));
    this.#child = child;
    this.#failure = null;
    child.on('message', (message: FromProcess) => this.#onMessage(message, account));
    // It follows `spawn` failures too, for which there is no `exit`.
    child.once('error', (error) => this.#onExit(account, error.message));
    child.once('exit', (code, signal) => this.#onExit(account, signal ?? `status ${code}`));
    send(child, { kind: 'run', config });
  }

  #onMessage(message: FromProcess, account: LoanAccount): void {
    switch (message.kind) {
      case 'claims':
        return account.onClaims(message);
      case 'starting':
        return this.#o.onStarting(message.reason);
      case 'failed':
        this.#failure = new NightshiftError(message.code, message.message);
        return;
      case 'ready':
        this.#url = message.url;
        this.#failedStarts = 0;
        this.#onReady();
    }
  }

  #onExit(account: LoanAccount, how: string): void {
    if (this.#child === null) return;
    account.close();
    const wasReady = this.#url !== null;
    const { pid } = this.#child;
    this.#child = null;
    this.#url = null;
    if (this.#isClosing) return;
    const text = `process ${this.number} of the worker ended (${how})`;
    this.#onEnded(this.#failure ?? new NightshiftError('internal', text));
    this.#startAgain({ pid, how, wasReady });
  }

  #startAgain(death: { pid: number | undefined; how: string; wasReady: boolean }): void {
    if (!death.wasReady) this.#failedStarts++;
    const inMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failedStarts, LONGEST_PAUSE_MS);
    const fields = { number: this.number, ...death, inMs };
    this.#o.logger.error(fields, 'a process of the worker died, it is started again');
    this.#o.onDied();
    this.#restart = setTimeout(() => this.#fork(), inMs);
  }
}

function program(): string {
  return join(packageRoot(), 'dist', 'workers', 'processes', 'child.js');
}

/** A process that has just died gets nothing; its exit is handled. */
function send(child: ChildProcess, message: ToProcess): void {
  if (child.connected) child.send(message, () => undefined);
}
