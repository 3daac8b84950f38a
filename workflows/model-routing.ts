import { log } from '@temporalio/workflow';
import type { ModelRoute } from '../activities/contract';
import { awaitRouteActivity, step } from './activity-policies';

/** A route is not looked up again within this time, because a look-up per chunk would cost too many events. */
const FRESH_MS = 60_000;

/** What the routing of a model starts with. */
export interface ModelRoutingOptions {
  readonly model: string;
  /** Of the batch. */
  readonly endpoint: string;
  readonly route: ModelRoute;
  /** Whether `route` was looked up just now. */
  readonly isFresh: boolean;
  /** Called when the model has lost its route, and when it has one again. */
  readonly onChange: () => void;
}

/**
 * Where one model's chunks go. The configuration may change while a batch runs, so the route is looked up
 * again before each chunk, at most once a minute. While no worker can send the model's requests, all its
 * lanes wait in one activity, which adds nothing to the history (docs/design/execution.md#model-routes).
 */
export class ModelRouting {
  readonly #options: ModelRoutingOptions;
  #route: ModelRoute;
  #lookedUpMs: number;
  #lookUp: Promise<void> | null = null;
  /** Since when the model has no route, Unix ms; null while it has one. */
  unroutedSinceMs: number | null = null;

  constructor(options: ModelRoutingOptions) {
    this.#options = options;
    this.#route = options.route;
    this.#lookedUpMs = options.isFresh ? Date.now() : 0;
  }

  get route(): ModelRoute {
    return this.#route;
  }

  /** Makes the next `ensureRoute` look the route up, even if it is fresh. */
  invalidate(): void {
    this.#lookedUpMs = 0;
  }

  /** Resolves when there is a route, at once if it is fresh. @throws when the scope is cancelled */
  async ensureRoute(): Promise<void> {
    if (Date.now() - this.#lookedUpMs < FRESH_MS) return;
    this.#lookUp ??= this.#find().finally(() => (this.#lookUp = null));
    await this.#lookUp;
  }

  async #find(): Promise<void> {
    const { model, endpoint } = this.#options;
    this.#route = (await step('routeModel', { model, endpoint })) ?? (await this.#untilRouted());
    this.#lookedUpMs = Date.now();
  }

  async #untilRouted(): Promise<ModelRoute> {
    const { model, endpoint, onChange } = this.#options;
    log.warn('no worker can send requests of this model: they wait', { model });
    this.unroutedSinceMs = Date.now();
    onChange();
    const route = await awaitRouteActivity({ model, endpoint });
    log.info('the model has a route again', { model, queue: route.queue });
    this.unroutedSinceMs = null;
    onChange();
    return route;
  }
}
