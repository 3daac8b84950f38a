import type { Priority } from '../../chunks/priority';
import { ExpectedOutput } from '../cost';
import { Backlog } from './backlog';
import { Share } from './flow-order';
import { HeapEntry } from './indexed-heap';
import type { Link } from './linked-list';

/** The place of a flow in the order of evictions: the flow that was evicted from longest ago is first. */
export class EvictionTurn<F> extends HeapEntry {
  readonly flow: F;

  constructor(flow: F) {
    super();
    this.flow = flow;
  }
}

/** The requests of one tenant for one model in one band of a pool: what is queued, in flight, and served. */
export class Flow<R extends Link<R> & { readonly priority: Priority }> extends Share {
  readonly tenant: string;
  readonly model: string;
  readonly backlog = new Backlog<R>();
  readonly eviction = new EvictionTurn<Flow<R>>(this);
  inFlight = 0;
  /** Cost of everything that was dispatched: real for ended requests, estimated for those in flight. */
  served = 0;
  /** It has requests, but none of them may be dispatched now. */
  isParked = false;
  /** When a sweep first found it without requests; null while it has some. */
  idleSinceMs: number | null = null;

  #output: ExpectedOutput | null = null;

  constructor(tenant: string, model: string, weight: number) {
    super(weight);
    this.tenant = tenant;
    this.model = model;
  }

  /** What its requests are expected to cost, learned from its answers. */
  get output(): ExpectedOutput {
    return (this.#output ??= new ExpectedOutput());
  }

  get isIdle(): boolean {
    return this.inFlight === 0 && this.backlog.size === 0;
  }
}
