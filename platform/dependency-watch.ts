import type { Logger } from './logger';
import { Gauge, type Registry } from './metrics';
import { tryCheck, type ReadinessCheck } from './readiness';

export interface DependencyWatchOptions {
  /** By name, e.g. `postgres`. */
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  readonly logger: Logger;
  readonly up: DependencyGauge;
  readonly everyMs?: number;
  /** Longest wait for one check, ms. */
  readonly checkTimeoutMs?: number;
}

/** 1 while a dependency answers, by its name. */
export type DependencyGauge = Gauge<'dependency'>;

/** A running watch; checks until it is closed. */
export interface DependencyWatch {
  close(): Promise<void>;
}

const EVERY_MS = 5_000;
const CHECK_TIMEOUT_MS = 2_000;

/** Registers `dependency_up`. */
export function createDependencyGauge(registers: Registry[]): DependencyGauge {
  return new Gauge({
    name: 'dependency_up',
    help: '1 while a dependency of this process answers, checked every 5 s, by name',
    labelNames: ['dependency'],
    registers,
  });
}

/**
 * Checks every 5 s whether the dependencies of a process answer. `/ready` is not enough: not every
 * installation probes it, and calls to a dependency that is down often just wait. An operator finds each
 * outage in the log (one line when it begins, one with its duration when it ends) and in the metrics. A
 * check that hangs is not started a second time.
 */
export function watchDependencies(options: DependencyWatchOptions): DependencyWatch {
  const { checks, everyMs = EVERY_MS } = options;
  const watched = Object.entries(checks).map(([name, check]) => new Watched(name, check, options));
  const askAll = (): void => watched.forEach((dependency) => void dependency.ask());
  const timer = setInterval(askAll, everyMs);
  timer.unref();
  askAll();
  return {
    close: async () => {
      clearInterval(timer);
      await Promise.all(watched.map((dependency) => dependency.close()));
    },
  };
}

class Watched {
  readonly #name: string;
  readonly #check: ReadinessCheck;
  readonly #options: DependencyWatchOptions;
  /** The check that is still running. It may be older than its time limit. */
  #call: Promise<void> | null = null;
  #asking: Promise<void> | null = null;
  #downSinceMs: number | null = null;
  #isClosed = false;

  constructor(name: string, check: ReadinessCheck, options: DependencyWatchOptions) {
    this.#name = name;
    this.#check = check;
    this.#options = options;
    options.up.set({ dependency: name }, 1);
  }

  ask(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = null));
    return this.#asking;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#asking;
  }

  async #ask(): Promise<void> {
    const result = await tryCheck(
      () => (this.#call ??= this.#check().finally(() => (this.#call = null))),
      this.#options.checkTimeoutMs ?? CHECK_TIMEOUT_MS,
    );
    // A shutdown also closes the dependencies, which is not an outage.
    if (!this.#isClosed) this.#report(result);
  }

  #report(result: string): void {
    const { logger, up } = this.#options;
    const dependency = this.#name;
    up.set({ dependency }, result === 'ok' ? 1 : 0);
    if (result !== 'ok' && this.#downSinceMs === null) {
      this.#downSinceMs = performance.now();
      logger.warn({ dependency, reason: result }, `${dependency} does not answer`);
    } else if (result === 'ok' && this.#downSinceMs !== null) {
      const awayMs = Math.round(performance.now() - this.#downSinceMs);
      this.#downSinceMs = null;
      logger.info({ dependency, awayMs }, `${dependency} answers again`);
    }
  }
}
