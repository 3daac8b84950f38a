import { PRIORITY } from '../../chunks/priority';
import { Share } from '../queue/flow-order';
import type { LoanClaim } from './loan-shares';
import type { PermitRequest, PermitTurn } from './permit-turn';
import { PriorityClass } from './priority-class';

/**
 * The requests of one tenant at one limit: urgent before normal before relaxed, and within a priority its
 * batches share by cost.
 */
export class TenantLine<W> extends Share {
  readonly tenant: string;
  /** Requests that hold a permit. */
  open = 0;
  /** Requests that wait. */
  size = 0;
  readonly #normal = new PriorityClass<W, TenantLine<W>>(this, PRIORITY.normal);
  // Most tenants have requests of one priority only.
  #urgent: PriorityClass<W, TenantLine<W>> | null = null;
  #relaxed: PriorityClass<W, TenantLine<W>> | null = null;

  constructor(tenant: string, weight: number) {
    super(weight);
    this.tenant = tenant;
  }

  get isIdle(): boolean {
    return this.open === 0 && this.size === 0;
  }

  get hasUrgent(): boolean {
    return this.#urgent !== null && this.#urgent.size > 0;
  }

  turnOf(owner: W, request: PermitRequest): PermitTurn<W, TenantLine<W>> {
    return this.#classOf(request.priority).turnOf(owner, request);
  }

  /** What each of its batches claims of the limit. */
  *claims(): Iterable<LoanClaim> {
    const { tenant } = this;
    for (const one of [this.#urgent, this.#normal, this.#relaxed]) {
      for (const { batch, open, waiting } of one?.batches() ?? []) {
        yield { tenant, batch, held: open, waits: waiting.size > 0 };
      }
    }
  }

  push(turn: PermitTurn<W, TenantLine<W>>, end: 'back' | 'front'): void {
    this.#classOf(turn.line.priority).push(turn, end);
    this.size++;
  }

  /** Gives a permit to the request whose turn it is; null if none waits. */
  shift(): PermitTurn<W, TenantLine<W>> | null {
    const turn = this.#urgent?.shift() ?? this.#normal.shift() ?? this.#relaxed?.shift() ?? null;
    if (turn === null) return null;
    this.size--;
    this.open++;
    return turn;
  }

  remove(turn: PermitTurn<W, TenantLine<W>>): void {
    this.#classOf(turn.line.priority).remove(turn);
    this.size--;
  }

  /** A request gets its permit without waiting. */
  charge(turn: PermitTurn<W, TenantLine<W>>): void {
    this.open++;
    this.#classOf(turn.line.priority).charge(turn);
  }

  /** A permit is given back; its request cost `difference` more than it was charged. */
  end({ line }: PermitTurn<W, TenantLine<W>>, difference: number): void {
    this.open--;
    this.#classOf(line.priority).end(line, difference);
  }

  #classOf(priority: number): PriorityClass<W, TenantLine<W>> {
    if (priority === PRIORITY.normal) return this.#normal;
    if (priority < PRIORITY.normal)
      return (this.#urgent ??= new PriorityClass<W, TenantLine<W>>(this, PRIORITY.urgent));
    return (this.#relaxed ??= new PriorityClass<W, TenantLine<W>>(this, PRIORITY.relaxed));
  }
}
