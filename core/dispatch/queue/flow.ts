import { ExpectedOutput } from '../cost';
import { Backlog, type BacklogEntry } from './backlog';
import { HeapEntry } from './indexed-heap';
import { TokenWindow } from './token-window';

/** The place of a flow in the order of evictions: the flow that was evicted from longest ago is first. */
export class EvictionTurn<F> extends HeapEntry {
  readonly flow: F;

  constructor(flow: F) {
    super();
    this.flow = flow;
  }
}

/** The requests of one tenant for one model in one band of a pool: what is queued, in flight, and served. */
export class Flow<R extends BacklogEntry<R>> extends Backlog<R> {
  inFlight = 0;
  /** Cost of everything that was dispatched: real for ended requests, estimated for those in flight. */
  served = 0;
  /** It has requests, but none of them may be dispatched now. */
  isParked = false;
  readonly eviction = new EvictionTurn<Flow<R>>(this);
  readonly tenant: string;
  readonly model: string;
  /** When a sweep first found it without requests; null while it has some. */
  idleSinceMs: number | null = null;

  #output: ExpectedOutput | null = null;
  // Created with the first answer: most of 10,000 flows may never get one.
  #tokens: TokenWindow | null = null;

  constructor(tenant: string, model: string, weight: number) {
    super(weight);
    this.tenant = tenant;
    this.model = model;
  }

  /** What its requests are expected to cost, learned from its answers. */
  get output(): ExpectedOutput {
    return (this.#output ??= new ExpectedOutput());
  }

  /** One of its requests ended and had so many tokens of input and output. */
  onServed(tokens: number, nowMs: number): void {
    this.#tokens ??= new TokenWindow();
    this.#tokens.add(tokens, nowMs);
  }

  /** Tokens of its requests that ended in the last minute. */
  recentTokens(nowMs: number): number {
    return this.#tokens?.sum(nowMs) ?? 0;
  }

  get isIdle(): boolean {
    return this.inFlight === 0 && this.size === 0;
  }
}
