import { Flow } from './flow';
import type { RequestFlow } from './queued-request';

/** A flow without requests is forgotten after this time, ms. */
const IDLE_MS = 300_000;
/** Further idle flows are forgotten at once: clients may choose model names, so their number is unbounded. */
const MAX_IDLE_FLOWS = 10_000;

/** The flows of one queue, by tenant and model, created on first use. */
export class FlowTable {
  // Maps of maps: to join both names into one key would cost a third of the time of a push.
  readonly #tenants = new Map<string, Map<string, RequestFlow>>();
  readonly #weightOf: (tenant: string, model: string) => number;
  #size = 0;

  constructor(weightOf: (tenant: string, model: string) => number) {
    this.#weightOf = weightOf;
  }

  get size(): number {
    return this.#size;
  }

  *[Symbol.iterator](): Generator<RequestFlow> {
    for (const flows of this.#tenants.values()) yield* flows.values();
  }

  find(tenant: string, model: string): RequestFlow | undefined {
    return this.#tenants.get(tenant)?.get(model);
  }

  flowOf(tenant: string, model: string): RequestFlow {
    return this.find(tenant, model) ?? this.#create(tenant, model);
  }

  /** Forgets flows that have been idle for 5 min, and further ones above {@link MAX_IDLE_FLOWS}. */
  sweep(nowMs: number): void {
    let idle = 0;
    for (const flow of this) {
      if (!flow.isIdle) {
        flow.idleSinceMs = null;
        continue;
      }
      flow.idleSinceMs ??= nowMs;
      if (nowMs - flow.idleSinceMs >= IDLE_MS) this.#forget(flow);
      else idle++;
    }
    for (const flow of this) {
      if (idle <= MAX_IDLE_FLOWS) return;
      if (!flow.isIdle) continue;
      this.#forget(flow);
      idle--;
    }
  }

  #create(tenant: string, model: string): RequestFlow {
    const flow: RequestFlow = new Flow(tenant, model, this.#weightOf(tenant, model));
    const flows = this.#tenants.get(tenant);
    if (flows === undefined) this.#tenants.set(tenant, new Map([[model, flow]]));
    else flows.set(model, flow);
    this.#size++;
    return flow;
  }

  #forget({ tenant, model }: RequestFlow): void {
    const flows = this.#tenants.get(tenant);
    flows?.delete(model);
    if (flows?.size === 0) this.#tenants.delete(tenant);
    this.#size--;
  }
}
