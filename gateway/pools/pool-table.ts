import type { PoolModels } from '../models/pool-models';
import type { GatewayPool } from './gateway-pool';

/** The model that stands for all that no pool names. */
export const ANY_MODEL = '*';

/** All pools, by the models that they serve. */
export class PoolTable {
  readonly pools: readonly GatewayPool[];
  readonly #byModel = new Map<string, GatewayPool>();

  constructor(pools: readonly GatewayPool[]) {
    this.pools = pools;
    for (const pool of pools) for (const model of pool.models) this.#byModel.set(model, pool);
  }

  /** Names of models that pools list. */
  get models(): string[] {
    return [...this.#byModel.keys()].filter((model) => model !== ANY_MODEL);
  }

  /** The models that the backends of the pool of `*` list; null without such a pool. */
  get listed(): PoolModels | null {
    return this.#byModel.get(ANY_MODEL)?.listed ?? null;
  }

  /** Whether a pool lists a model by its name. */
  names(model: string): boolean {
    return model !== ANY_MODEL && this.#byModel.has(model);
  }

  /** The pool of a model; null if no pool serves it. */
  poolOf(model: string): GatewayPool | null {
    return this.#byModel.get(model) ?? this.#byModel.get(ANY_MODEL) ?? null;
  }
}
