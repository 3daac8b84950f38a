import { setTimeout as sleep } from 'node:timers/promises';
import { retry, RETRY_POLICIES } from '../core/async/retry';
import type { DependencyGauge } from './dependency-watch';
import type { Logger } from './logger';
import type { ObservabilityServer } from './observability-server';
import type { StartOptions } from './process';

/** Where a process that starts shows what it waits for. */
export interface StartWaitOptions extends StartOptions {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly up: DependencyGauge;
  readonly observability: Pick<ObservabilityServer, 'markStarting'>;
}

/** Something that a process must reach before it can work. */
export interface Dependency<T> {
  /** As in `/ready` and `dependency_up`: `postgres`, `object_store`, `temporal`. */
  readonly name: string;
  reach(): Promise<T>;
  /** Whether it may answer later. Any other error ends the start. */
  isAway(error: unknown): boolean;
}

/** A dependency that is silent for so long is reported before the attempt to reach it has failed. */
const SILENT_MS = 5_000;

/**
 * The time that a process spends at its start on waiting for what it depends on, in total for all of them
 * (docs/design/processes.md#waiting-at-the-start).
 */
export class StartWait {
  readonly #options: StartWaitOptions;
  readonly #endsAtMs: number;

  constructor(options: StartWaitOptions) {
    const { startWaitMs = RETRY_POLICIES.processStart.limitMs } = options;
    this.#options = options;
    this.#endsAtMs = performance.now() + startWaitMs;
  }

  /**
   * Repeats `reach` while the dependency is away and time is left.
   * @throws the last error of `reach`, or the reason of the signal
   */
  async until<T>(dependency: Dependency<T>): Promise<T> {
    const { name } = dependency;
    this.#options.signal?.throwIfAborted();
    this.#options.observability.markStarting(`waiting for ${name}`);
    const outage = this.#watch(name);
    try {
      const value = await abortable(this.#retry(dependency, outage.begin), this.#options.signal);
      outage.end();
      return value;
    } finally {
      outage.close();
    }
  }

  #retry<T>({ reach, isAway }: Dependency<T>, onAway: (error: unknown) => void): Promise<T> {
    const { signal } = this.#options;
    const limitMs = Math.max(0, this.#endsAtMs - performance.now());
    return retry(reach, {
      policy: { ...RETRY_POLICIES.processStart, limitMs },
      nowMs: () => performance.now(),
      sleep: (ms) => sleep(ms, undefined, signal === undefined ? {} : { signal }),
      isRetryable: (error) => signal?.aborted !== true && isAway(error),
      onRetry: onAway,
    });
  }

  /** Reports the first failure, or silence, of a dependency, and its first answer after that. */
  #watch(dependency: string) {
    const { logger, up } = this.#options;
    let beganMs: number | null = null;
    const begin = (error?: unknown): void => {
      if (beganMs !== null) return;
      beganMs = performance.now();
      up.set({ dependency }, 0);
      const waitSec = Math.round((this.#endsAtMs - beganMs) / 1_000);
      const fields = { dependency, ...(error === undefined ? {} : { err: error }) };
      logger.warn(fields, `${dependency} does not answer yet, waiting up to ${waitSec} s`);
    };
    const end = (): void => {
      if (beganMs === null) return;
      const awayMs = Math.round(performance.now() - beganMs);
      up.set({ dependency }, 1);
      logger.info({ dependency, awayMs }, `${dependency} answers`);
    };
    const silence = setTimeout(begin, SILENT_MS);
    return { begin, end, close: () => clearTimeout(silence) };
  }
}

/** The outcome of `work`, or the reason of the signal if that comes first; `work` then goes on unobserved. */
function abortable<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
