import type { ModelRoute } from '../activities/contract';
import type { AnnouncedRoutes, SeenRoutes } from '../core/dispatch/announced-routes';
import { findRoute, isKnownModel, longestTimeoutMs } from '../core/dispatch/announced-routes';
import { isAudioEndpoint } from '../core/openai/endpoints';
import { NO_GATEWAYS, type Registry } from '../inference/registry';
import type { Logger } from '../platform/logger';
import type { WorkerRoutes } from '../storage/postgres/worker-routes';
import { EXEC_QUEUE, modelQueue } from '../workflows/contract';

/** Which task queue a model's chunks go to, according to all workers of the installation. */
export interface RouteDirectory {
  /** Null while no live worker can send requests of `model`. Those of audio endpoints may take longer than others. */
  routeOf(model: string, endpoint?: string): ModelRoute | null;
  /**
   * Whether a recent worker could send requests of `model`. If so, its lines wait and are not given up.
   * True for every model while no worker at all has announced anything.
   */
  isKnown(model: string): boolean;
  /** The longest time that a request of any model may take, ms; null while no live worker sends any. */
  longestTimeoutMs(): number | null;
  /** Reads the announcements now. @throws postgres_unavailable */
  update(): Promise<void>;
  close(): Promise<void>;
}

/** What a directory is made from. */
export interface RouteDirectoryOptions {
  readonly registry: Registry;
  readonly table: WorkerRoutes;
  readonly worker: string;
  readonly logger: Logger;
  readonly intervalMs?: number;
}

const INTERVAL_MS = 5_000;

/**
 * Announces every 5 s which models this worker can send, and caches the announcements of the others. A
 * worker without gateways only reads them.
 * Look-ups are answered from memory, so they work while PostgreSQL is away. Resolves after the first
 * announcement or its failure, so that a worker is announced before it takes work
 * (docs/design/execution.md#model-routes).
 */
export async function openRouteDirectory(options: RouteDirectoryOptions): Promise<RouteDirectory> {
  const directory = new Directory(options);
  await directory.refresh();
  return directory;
}

/** Task queues from which a worker with the role `exec` takes chunks: the shared one, and one per model. */
export function queuesOf(registry: Pick<Registry, 'gateways'>): string[] {
  const models = registry.gateways.flatMap((gateway) => gateway.models);
  return [...new Set([EXEC_QUEUE, ...models.map(modelQueue)])];
}

class Directory implements RouteDirectory {
  readonly #options: RouteDirectoryOptions;
  /** Null in a process that sends no requests. */
  readonly #own: AnnouncedRoutes | null;
  readonly #timer: NodeJS.Timeout;
  #others: readonly SeenRoutes[] = [];
  #updating: Promise<void> | null = null;

  constructor(options: RouteDirectoryOptions) {
    this.#options = options;
    this.#own = announcedBy(options.registry);
    this.#timer = setInterval(() => void this.refresh(), options.intervalMs ?? INTERVAL_MS);
    this.#timer.unref();
  }

  routeOf(model: string, endpoint = ''): ModelRoute | null {
    const found = findRoute(model, this.#workers(), { isAudio: isAudioEndpoint(endpoint) });
    if (found === null) return null;
    const queue = found.queue === 'model' ? modelQueue(model) : EXEC_QUEUE;
    return { queue, requestTimeoutMs: found.requestTimeoutMs };
  }

  isKnown(model: string): boolean {
    const workers = this.#workers();
    // Without any worker that sends, nothing is known of any model. Its lines wait for one.
    return workers.length === 0 || isKnownModel(model, workers);
  }

  longestTimeoutMs(): number | null {
    return longestTimeoutMs(this.#workers());
  }

  /** Concurrent callers share one statement, so that many batches cost no more than one. */
  update(): Promise<void> {
    return (this.#updating ??= this.#announce().finally(() => (this.#updating = null)));
  }

  async refresh(): Promise<void> {
    await this.update().catch((error: unknown) => {
      this.#options.logger.warn({ err: error }, 'routes could not be announced, trying again');
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#updating?.catch(() => undefined);
  }

  async #announce(): Promise<void> {
    const { table, worker } = this.#options;
    this.#others = await table.announce(worker, this.#own);
  }

  /** Announcements do not age while PostgreSQL is away, because other workers may still be alive. */
  #workers(): SeenRoutes[] {
    const own = this.#own === null ? [] : [{ ...this.#own, ageMs: 0 }];
    return [...own, ...this.#others];
  }
}

function announcedBy(registry: Registry): AnnouncedRoutes | null {
  if (registry === NO_GATEWAYS) return null;
  const listed = registry.gateways.flatMap(({ models, gateway }) =>
    models.map((model): [string, number] => [model, gateway.request_timeout]),
  );
  const only = registry.gateways.find(({ models }) => models.length === 0);
  const audio = registry.gateways.map(({ gateway }) => gateway.audio_request_timeout);
  return {
    global: only?.gateway.request_timeout ?? null,
    models: Object.fromEntries(listed),
    ...(audio.length === 0 ? {} : { audio: Math.max(...audio) }),
  };
}
