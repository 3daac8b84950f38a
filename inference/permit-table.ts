import {
  EQUAL_WEIGHTS,
  modelWeight,
  tenantWeight,
  type Fairness,
} from '../core/dispatch/fairness-weights';
import type { PermitQueueOptions } from '../core/dispatch/permits/permit-queue';
import type { AcquireRequest, GatewayLimit } from './dispatcher';
import { ModelPermits, type Stage } from './model-permits';
import { OWN_PERMITS, type PermitSource } from './loans/permit-source';
import { PermitStage, suppliedBy } from './permit-stage';

/** The limits of one process. */
export interface PermitLimits {
  /** `concurrency.global`: requests of this process. */
  readonly global: number;
  /** `concurrency.per_model`: requests of one model. */
  readonly perModel: number;
  /** `concurrency.adaptive`: whether replies lower and raise the limit of their model. */
  readonly adaptive?: boolean;
  /** All weights are 1 by default. */
  readonly fairness?: Fairness;
  /** Whether every gateway divides its service among tenants; by default, none does. */
  readonly divides?: boolean;
  /** Where the permits come from; by default, this process shares them with no other one. */
  readonly source?: PermitSource;
  /** Milliseconds of a monotonic clock; given by tests. */
  readonly now?: () => number;
}

/** Idle models whose lowered limit is remembered. */
const REMEMBERED_MODELS = 1_000;

/**
 * The permits of all models, all gateways and the process, created on first use. Clients choose model
 * names, so a model without requests is forgotten, unless its limit was lowered. At most
 * {@link REMEMBERED_MODELS} of those are kept.
 */
export class PermitTable {
  readonly #limits: PermitLimits;
  readonly #models = new Map<string, ModelPermits>();
  readonly #gateways = new Map<string, Stage>();
  readonly #global: Stage;
  readonly #onMore: (stage: Stage) => void;

  /** @param onMore called when there are more permits of a stage than before */
  constructor(limits: PermitLimits, onMore: (stage: Stage) => void) {
    this.#limits = limits;
    this.#onMore = onMore;
    this.#global = this.#openStage('process', limits.global, limits.divides ?? false);
  }

  get models(): Iterable<ModelPermits> {
    return this.#models.values();
  }

  /** Gateways with a limit of their own. */
  get gateways(): Iterable<[key: string, stage: Stage]> {
    return this.#gateways;
  }

  find(model: string): ModelPermits | undefined {
    return this.#models.get(model);
  }

  permitsOf({ model, gateway, divides = false }: AcquireRequest): ModelPermits {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    if (this.#models.size >= REMEMBERED_MODELS) this.#forgetOneIdle();
    const { perModel, adaptive = false, fairness = EQUAL_WEIGHTS } = this.#limits;
    const { now = () => performance.now(), source = OWN_PERMITS } = this.#limits;
    const wider = gateway === undefined ? [] : [this.#gatewayOf(gateway, divides)];
    const permits = new ModelPermits({
      ...{ model, max: perModel, adaptive, now, source, onMore: this.#onMore },
      weight: modelWeight(fairness, model),
      queue: this.#sharing(divides),
      wider: [...wider, this.#global],
    });
    this.#models.set(model, permits);
    return permits;
  }

  forgetIfIdle(permits: ModelPermits): void {
    if (permits.isIdle && permits.isFresh) this.#forget(permits);
  }

  #sharing(divides: boolean): PermitQueueOptions {
    const { fairness = EQUAL_WEIGHTS } = this.#limits;
    return { divides, weightOf: (tenant) => tenantWeight(fairness, tenant) };
  }

  #gatewayOf({ key, limit }: GatewayLimit, divides: boolean): Stage {
    let stage = this.#gateways.get(key);
    if (stage === undefined) {
      stage = this.#openStage(`gateway ${key}`, limit, divides);
      this.#gateways.set(key, stage);
    }
    return stage;
  }

  /** Drops the idle model whose first use was the earliest; its limit is learned again. */
  #forgetOneIdle(): void {
    for (const permits of this.#models.values()) {
      if (permits.isIdle) return this.#forget(permits);
    }
  }

  #forget(permits: ModelPermits): void {
    this.#models.delete(permits.model);
    permits.close();
  }

  /** A limit that is not of one model. */
  #openStage(name: string, limit: number, divides: boolean): Stage {
    const { source = OWN_PERMITS } = this.#limits;
    const supply = source.open(name, limit, {
      most: Infinity,
      get held() {
        return stage.held;
      },
      claims: () => stage.queue.claims(),
      onMore: () => this.#onMore(stage),
    });
    const stage: Stage = new PermitStage(suppliedBy(supply), this.#sharing(divides));
    return stage;
  }
}
