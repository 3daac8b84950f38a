import type { ListedModel } from '../../inference/proxy/model-listing';

/** One backend, as far as its models are concerned. */
export interface ModelSource {
  readonly isReady: boolean;
  /** Null if it gives no list in time. */
  read(): Promise<readonly ListedModel[] | null>;
}

/** How long an answer counts. */
const FRESH_MS = 10_000;
/** After this long, backends that gave no list are asked again. */
const RETRY_MS = 1_000;

/**
 * The models of a pool of `*`, which only its backends know (docs/design/gateway.md#models). Clients may ask as
 * often as they like: the backends are asked at most once in 10 s.
 */
export class PoolModels {
  readonly #sources: readonly ModelSource[];
  readonly #now: () => number;
  #known: readonly ListedModel[] | null = null;
  #askAgainMs = -Infinity;
  #asking: Promise<void> | null = null;

  constructor(sources: readonly ModelSource[], now: () => number) {
    this.#sources = sources;
    this.#now = now;
  }

  /** The models of all backends; null if no backend has ever given a list. */
  async list(): Promise<readonly ListedModel[] | null> {
    if (this.#now() >= this.#askAgainMs) {
      this.#asking ??= this.#ask().finally(() => (this.#asking = null));
      await this.#asking;
    }
    return this.#known;
  }

  /** Backends that are not ready are not asked, so that no client waits for them. */
  async #ask(): Promise<void> {
    const ready = this.#sources.filter(({ isReady }) => isReady);
    const lists = (await Promise.all(ready.map((source) => source.read()))).filter(
      (list) => list !== null,
    );
    const isKnown = lists.length > 0;
    // While all are away, the last answer stands: most of them come back with the same models.
    if (isKnown) this.#known = merged(lists);
    this.#askAgainMs = this.#now() + (isKnown ? FRESH_MS : RETRY_MS);
  }
}

/** Each model once, as the first backend lists it. */
function merged(lists: readonly (readonly ListedModel[])[]): readonly ListedModel[] {
  const byId = new Map<string, ListedModel>();
  for (const model of lists.flat()) if (!byId.has(model.id)) byId.set(model.id, model);
  return [...byId.values()];
}
