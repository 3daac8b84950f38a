import { Share } from '../queue/flow-order';
import { Link, LinkedList } from '../queue/linked-list';

/** What a request for a permit is charged to, and how much. */
export interface PermitRequest {
  readonly tenant: string;
  readonly batch: string;
  /** 2 urgent, 3 normal, 4 relaxed (docs/design/permits.md#priority). */
  readonly priority: number;
  /** Expected cost, divided by the weight of its model. */
  readonly cost: number;
  /** Of requests of one batch and priority those with the least number go first; 0 by default. */
  readonly order?: number;
}

/**
 * One request of an owner `W` at one limit: it waits for a permit there, or holds one. `T` is what stands for
 * its tenant.
 */
export class PermitTurn<W, T = unknown> extends Link<PermitTurn<W, T>> {
  readonly owner: W;
  readonly line: BatchLine<W, T>;
  readonly cost: number;
  readonly order: number;
  /** Whether its tenant was charged, so that the end corrects the charge. */
  isCharged = false;
  /** It had its turn and gave it back unused, so its next turn is free. */
  isPaid = false;

  constructor(owner: W, line: BatchLine<W, T>, { cost, order = 0 }: PermitRequest) {
    super();
    this.owner = owner;
    this.line = line;
    this.cost = cost;
    this.order = order;
  }

  /** What serving it costs now. */
  get charge(): number {
    return this.isPaid ? 0 : this.cost;
  }
}

/** The requests of one batch and priority at one limit, in their order; of equal ones, first come, first served. */
export class BatchLine<W, T = unknown> extends Share {
  readonly tenant: T;
  readonly batch: string;
  readonly priority: number;
  readonly waiting = new LinkedList<PermitTurn<W, T>>();
  /** Requests that hold a permit. */
  open = 0;

  constructor(tenant: T, batch: string, priority: number) {
    // Batches of a tenant are equal: it can order its own work by completion windows.
    super(1);
    this.tenant = tenant;
    this.batch = batch;
    this.priority = priority;
  }

  get isIdle(): boolean {
    return this.open === 0 && this.waiting.size === 0;
  }

  /** Makes a request wait. Each chunk of the batch has one that waits, so few are looked at. */
  wait(turn: PermitTurn<W, T>): void {
    let before = this.waiting.last;
    while (before !== null && before.order > turn.order) before = before.previous;
    if (before === null) this.waiting.pushFront(turn);
    else this.waiting.insertAfter(before, turn);
  }
}
