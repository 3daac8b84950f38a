import { FinishTags } from './finish-tags';
import type { EvictionTurn } from './flow';
import type { FlowOrder } from './flow-order';
import { FlowTable } from './flow-table';
import { IndexedHeap } from './indexed-heap';
import { PrefixTurn } from './prefix-turn';
import type { QueuedRequest, RequestFlow } from './queued-request';
import { StartTags } from './start-tags';

/** How a queue orders its flows. */
export interface FairRequestQueueOptions {
  /** `start`: start tags, on heads only. `finish`: finish tags, on arrival. */
  readonly scheduler?: 'start' | 'finish';
  /** The weight of a flow, read when it is created; above 0. All weights are 1 by default. */
  readonly weightOf?: (tenant: string, model: string) => number;
}

/**
 * A queue that divides service among flows by weight and cost (docs/design/flow-control.md#the-queue).
 *
 * Requests of a flow form linked lists; a heap orders the flows that have requests. So `push` takes O(1)
 * steps if the flow has requests already, and everything else takes O(log n) steps for n flows. The number
 * of requests does not matter.
 */
export class FairRequestQueue {
  readonly table: FlowTable;
  readonly #order: FlowOrder<RequestFlow>;
  readonly #turn: PrefixTurn | null;
  readonly #evictions = new IndexedHeap<EvictionTurn<RequestFlow>>();
  /** Flows with urgent requests that may be served, in the order of their turns. */
  readonly #urgent = new Set<RequestFlow>();
  readonly #parked = new Set<RequestFlow>();
  #length = 0;
  #cost = 0;
  #inFlight = 0;
  #arrivals = 0;
  #evicted = 0;

  constructor({ scheduler = 'start', weightOf = () => 1 }: FairRequestQueueOptions = {}) {
    this.table = new FlowTable(weightOf);
    this.#order = scheduler === 'start' ? new StartTags() : new FinishTags();
    this.#turn = scheduler === 'start' ? new PrefixTurn() : null;
  }

  /** Queued requests. */
  get length(): number {
    return this.#length;
  }

  /** Cost of the queued requests. */
  get cost(): number {
    return this.#cost;
  }

  /** Flows with queued requests. */
  get backlogged(): number {
    return this.#evictions.size;
  }

  /** The request that `pop` returns next; null if none may be dispatched. */
  get head(): QueuedRequest | null {
    return (this.#turnFlow() ?? this.#order.first)?.head ?? null;
  }

  /** The next urgent request out of turn: the flows that have some take turns. Null if there is none. */
  get urgentHead(): QueuedRequest | null {
    if (this.#urgent.size === 0) return null;
    for (const flow of this.#urgent) return flow.head;
    return null;
  }

  push(request: QueuedRequest): void {
    this.#enter(request, false);
  }

  /**
   * Queues a request that has waited in another queue: it goes before those of its flow that came later. With finish
   * tags, which order a flow by its entries, it goes to the end.
   */
  pushAged(request: QueuedRequest): void {
    this.#enter(request, this.#turn !== null);
  }

  #enter(request: QueuedRequest, isByAge: boolean): void {
    const flow = this.#flowOf(request);
    request.state = 'queued';
    request.sequence = this.#arrivals++;
    request.tag = this.#order.stamp(flow, request.cost);
    const before = flow.head;
    if (isByAge) flow.insert(request, (one) => one.queuedAtMs > request.queuedAtMs);
    else flow.push(request);
    this.#length++;
    this.#cost += request.cost;
    if (before === null) this.#evictions.push(flow.eviction);
    if (!flow.isParked) this.#onHead(flow, before);
  }

  /** Takes the next request and charges its flow; null if none may be dispatched. */
  pop(): QueuedRequest | null {
    const turn = this.#turnFlow();
    const flow = turn ?? this.#order.first;
    const request = flow?.head;
    if (flow === undefined || request == null) return null;
    this.#order.serve(flow, request, turn !== null);
    this.#turn?.onServed(flow, request, turn !== null);
    request.isCharged = true;
    this.#dispatch(flow, request);
    this.#order.rebase(this.table);
    return request;
  }

  /**
   * Takes the urgent request out of turn. Its flow is not charged: otherwise it would only borrow from its
   * own next turns.
   */
  popUrgent(): QueuedRequest | null {
    const request = this.urgentHead;
    const flow = request?.flow ?? null;
    if (request === null || flow === null) return null;
    this.#urgent.delete(flow);
    request.isCharged = false;
    this.#dispatch(flow, request);
    return request;
  }

  /** Dispatches a request without queuing it, and charges its flow. */
  bypass(request: QueuedRequest): void {
    const flow = this.#flowOf(request);
    request.isCharged = true;
    this.#order.charge(flow, request.cost);
    this.#count(flow, request);
  }

  /** Removes a queued request unserved, at no charge; returns false if it is not queued here. */
  remove(request: QueuedRequest): boolean {
    const { flow } = request;
    if (flow === null || request.state !== 'queued') return false;
    this.#unlink(flow, request);
    return true;
  }

  /**
   * Removes the request that can be missed most easily of the flow that was evicted from longest ago; null
   * if nothing is queued.
   */
  evict(): QueuedRequest | null {
    const flow = this.#evictions.first?.flow;
    const request = flow?.tail;
    if (flow === undefined || request == null) return null;
    flow.eviction.key = ++this.#evicted;
    this.#evictions.update(flow.eviction);
    this.#unlink(flow, request);
    return request;
  }

  /** The exchange of a dispatched request with its backend is over; `cost` is what it really cost. */
  end(request: QueuedRequest, cost: number): void {
    const { flow } = request;
    if (flow === null) return;
    flow.inFlight--;
    this.#inFlight--;
    const difference = cost - request.cost;
    flow.served += difference;
    if (request.isCharged && difference !== 0) this.#order.correct(flow, difference);
    if (this.#inFlight === 0 && this.#length === 0) this.#order.onIdle();
  }

  /** Passes over a flow until `unpark`: its requests stay queued, but may not be dispatched now. */
  park(flow: RequestFlow): void {
    if (flow.isParked) return;
    flow.isParked = true;
    this.#parked.add(flow);
    this.#urgent.delete(flow);
    if (flow.slot !== -1) this.#order.leave(flow);
  }

  /** Lets a parked flow compete again, without credit for the time in which it was parked. */
  unpark(flow: RequestFlow): void {
    if (!flow.isParked) return;
    flow.isParked = false;
    this.#parked.delete(flow);
    this.#onHead(flow, null);
  }

  unparkAll(): void {
    for (const flow of this.#parked) this.unpark(flow);
  }

  /**
   * Looks at every request, flow by flow, and forgets idle flows at the end. Each step yields the requests
   * of one flow that must leave; the caller removes them. It may take its time: the queue may change between
   * the steps.
   */
  *cleanupExpired(
    nowMs: number,
    isExpired: (request: QueuedRequest) => boolean = (request) =>
      request.isCancelled || nowMs >= (request.expiresMs ?? Infinity),
  ): Generator<readonly QueuedRequest[]> {
    for (const flow of this.table) yield flow.filter(isExpired);
    this.table.sweep(nowMs);
  }

  #flowOf(request: QueuedRequest): RequestFlow {
    return (request.flow ??= this.table.flowOf(request.tenant, request.model));
  }

  #turnFlow(): RequestFlow | null {
    return this.#turn !== null && this.#order.size > 1 ? this.#turn.flow : null;
  }

  #dispatch(flow: RequestFlow, request: QueuedRequest): void {
    this.#unlink(flow, request);
    this.#count(flow, request);
  }

  #count(flow: RequestFlow, request: QueuedRequest): void {
    request.state = 'dispatched';
    flow.inFlight++;
    flow.served += request.cost;
    this.#inFlight++;
  }

  #unlink(flow: RequestFlow, request: QueuedRequest): void {
    const before = flow.head;
    flow.remove(request);
    request.state = 'new';
    this.#length--;
    this.#cost -= request.cost;
    if (before === request || flow.head === null) this.#onHead(flow, before);
  }

  /** Enters a flow in the order, updates it or removes it, after its head may have changed. */
  #onHead(flow: RequestFlow, before: QueuedRequest | null): void {
    const { head, hasUrgent } = flow;
    if (head === null) return this.#onEmpty(flow);
    if (flow.isParked) return;
    if (flow.slot === -1) this.#order.join(flow, head);
    else if (head !== before) this.#order.retag(flow, head);
    if (hasUrgent) this.#urgent.add(flow);
    else if (this.#urgent.size > 0) this.#urgent.delete(flow);
  }

  #onEmpty(flow: RequestFlow): void {
    if (flow.eviction.slot !== -1) this.#evictions.remove(flow.eviction);
    if (flow.slot !== -1) this.#order.leave(flow);
    if (flow.isParked) this.#parked.delete(flow);
    flow.isParked = false;
    this.#urgent.delete(flow);
  }
}
