import type { QueuedRequest, RequestFlow } from './queued-request';

/** The cost after which a turn ends: the prompt tokens of some lines with a long common prefix. */
const MAX_TURN_COST = 16_384;

/**
 * Requests of one flow with the same prefix that are served one after the other, so that a backend still
 * holds the prefix in its cache. A turn is charged as one request, so the bounds on fairness hold with the
 * cost of a turn and one more request as the largest request (docs/design/flow-control.md#prefix-turns).
 */
export class PrefixTurn {
  #flow: RequestFlow | null = null;
  #prefix: number | null = null;
  #cost = 0;

  /** The flow whose turn goes on; null if the turn is over. */
  get flow(): RequestFlow | null {
    const flow = this.#flow;
    if (flow === null || flow.slot === -1 || this.#cost >= MAX_TURN_COST) return null;
    return flow.head?.prefix === this.#prefix ? flow : null;
  }

  onServed(flow: RequestFlow, { prefix, cost }: QueuedRequest, continuesTurn: boolean): void {
    this.#cost = continuesTurn ? this.#cost + cost : cost;
    this.#prefix = prefix;
    this.#flow = prefix === null ? null : flow;
  }
}
