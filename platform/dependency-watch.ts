import type { Logger } from './logger';
import { Gauge, type Registry } from './metrics';
import { tryCheck, type ReadinessCheck } from './readiness';

export interface DependencyWatchOptions {
  /** By name, e.g. `postgres`. */
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  readonly logger: Logger;
  readonly up: DependencyGauge;
  readonly everyMs?: number;
  /** Longest wait for one check. */
  readonly checkTimeoutMs?: number;
}

/** 1 while a dependency answers, by its name. */
export type DependencyGauge = Gauge<'dependency'>;

/** Asks until it is closed. */
export interface DependencyWatch {
  close(): Promise<void>;
}

const EVERY_MS = 5_000;
const CHECK_TIMEOUT_MS = 2_000;

/** The gauge of every process that watches what it needs. */
export function createDependencyGauge(registers: Registry[]): DependencyGauge {
  return new Gauge({
    name: 'dependency_up',
    help: '1 while what this process needs answers, asked every 5 s, by name',
    labelNames: ['dependency'],
    registers,
  });
}

/**
 * Asks every few seconds for what a process needs, so that log and metrics tell when it is away, also
 * where nobody asks `/ready` and where calls just wait: once when it stops answering, once when it
 * answers again, with the time it was away. A check that hangs is not asked a second time beside itself.
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
  /** The call that has not been answered yet, however long ago it was made. */
  #call: Promise<void> | null = null;
  #asking: Promise<void> | null = null;
  #awaySinceMs: number | null = null;
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
    // What is being closed does not answer either.
    if (!this.#isClosed) this.#tell(result);
  }

  #tell(result: string): void {
    const { logger, up } = this.#options;
    const dependency = this.#name;
    up.set({ dependency }, result === 'ok' ? 1 : 0);
    if (result !== 'ok' && this.#awaySinceMs === null) {
      this.#awaySinceMs = performance.now();
      logger.warn({ dependency, reason: result }, `${dependency} does not answer`);
    } else if (result === 'ok' && this.#awaySinceMs !== null) {
      const awayMs = Math.round(performance.now() - this.#awaySinceMs);
      this.#awaySinceMs = null;
      logger.info({ dependency, awayMs }, `${dependency} answers again`);
    }
  }
}
