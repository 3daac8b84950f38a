/** Models that one worker can send, with request timeouts in ms (docs/design/execution.md#model-routes). */
export interface AnnouncedRoutes {
  /** The timeout for every model; null unless the worker has one gateway for all of them. */
  readonly global: number | null;
  readonly models: Readonly<Record<string, number>>;
  /** The longest timeout of audio endpoints, which take longer; absent in announcements of earlier releases. */
  readonly audio?: number | undefined;
}

/** The announcement of a worker, and its age. */
export interface SeenRoutes extends AnnouncedRoutes {
  readonly ageMs: number;
}

/** The task queue on which a worker serves a model: the model's own, or the shared one. */
export interface FoundRoute {
  readonly queue: 'model' | 'shared';
  readonly requestTimeoutMs: number;
}

/** Workers announce themselves every 5 s. One that missed several announcements is gone. */
const LIVE_MS = 30_000;
/** How long a model stays known without a live worker: a restart or a deployment may take minutes. */
export const KNOWN_MS = 15 * 60_000;

/**
 * The route of requests of `model`, or null if no live worker can send them. A worker that lists the model
 * takes precedence over one that takes every model. The longest timeout wins, because it only bounds how
 * long a chunk that hangs may run.
 * @param options.isAudio whether their endpoint is one of audio
 */
export function findRoute(
  model: string,
  workers: readonly SeenRoutes[],
  { isAudio = false }: { readonly isAudio?: boolean } = {},
): FoundRoute | null {
  const live = workers.filter(({ ageMs }) => ageMs <= LIVE_MS);
  const atLeast = (timeoutMs: number | null, { audio = 0 }: SeenRoutes): number | null =>
    timeoutMs !== null && isAudio ? Math.max(timeoutMs, audio) : timeoutMs;
  const named = live.map((worker) => atLeast(timeoutOf(worker.models, model), worker));
  const own = longest(named);
  if (own !== null) return { queue: 'model', requestTimeoutMs: own };
  const shared = longest(live.map((worker) => atLeast(worker.global, worker)));
  return shared === null ? null : { queue: 'shared', requestTimeoutMs: shared };
}

/** The longest time that a request of any model may take, ms; null while no worker that sends is live. */
export function longestTimeoutMs(workers: readonly SeenRoutes[]): number | null {
  const live = workers.filter(({ ageMs }) => ageMs <= LIVE_MS);
  return longest(live.flatMap(({ global, models }) => [global, ...Object.values(models)]));
}

/** Whether a worker that was live within the last {@link KNOWN_MS} can send requests of `model`. */
export function isKnownModel(model: string, workers: readonly SeenRoutes[]): boolean {
  return workers.some(
    ({ ageMs, global, models }) =>
      ageMs <= KNOWN_MS && (global !== null || timeoutOf(models, model) !== null),
  );
}

function timeoutOf(models: AnnouncedRoutes['models'], model: string): number | null {
  return Object.hasOwn(models, model) ? (models[model] ?? null) : null;
}

function longest(timeouts: readonly (number | null)[]): number | null {
  const known = timeouts.filter((timeout) => timeout !== null);
  return known.length === 0 ? null : Math.max(...known);
}
