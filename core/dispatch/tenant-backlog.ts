import { Share } from './fair-shares';
import { PRIORITY } from '../chunks/priority';
import { Place, WaitingLine } from './waiting-line';

/** The tenant, model and priority by which a request gets its turn. */
export interface Turn {
  readonly tenant: string;
  readonly model: string;
  /** Lower is served first, within a tenant only. */
  readonly priority: number;
}

/** A place in a queue; pass it to `remove` to stop waiting. */
export class QueuePlace<T> extends Place<T> {
  readonly turn: Turn;
  /** The backlog it waits in; null while it does not wait. */
  backlog: TenantBacklog<T> | null = null;
  /** Its turn was charged already: it had its turn and was put back unused. */
  isPaid = false;

  constructor(item: T, turn: Turn) {
    super(item);
    this.turn = turn;
  }
}

/** Requests of equal priority, by model; the `Map` keeps the models in the order of their turns. */
interface PriorityClass<T> {
  readonly priority: number;
  readonly turns: Map<string, WaitingLine<T>>;
}

/**
 * The waiting requests of one tenant. Urgent requests go before normal, normal before relaxed; within a
 * priority, models take turns; within a model, first come, first served. All operations take O(1) steps,
 * because there are only three priorities.
 */
export class TenantBacklog<T> extends Share {
  readonly tenant: string;
  readonly #classes: PriorityClass<T>[] = [];
  #size = 0;

  constructor(tenant: string, weight: number) {
    super(weight);
    this.tenant = tenant;
  }

  get size(): number {
    return this.#size;
  }

  get hasUrgent(): boolean {
    const [first] = this.#classes;
    return first !== undefined && first.priority <= PRIORITY.urgent && first.turns.size > 0;
  }

  push(place: QueuePlace<T>, end: 'back' | 'front'): void {
    const { turns } = this.#classOf(place.turn.priority);
    let line = turns.get(place.turn.model);
    if (line === undefined) turns.set(place.turn.model, (line = new WaitingLine()));
    if (end === 'back') line.push(place);
    else line.pushFront(place);
    place.backlog = this;
    this.#size++;
  }

  /** Takes the next place. The model's next turn comes after the turns of the tenant's other models. */
  shift(): QueuePlace<T> | null {
    for (const { turns } of this.#classes) {
      for (const [model, line] of turns) {
        const place = line.first as QueuePlace<T> | null;
        turns.delete(model);
        if (place === null) continue;
        this.#take(place, line);
        if (line.first !== null) turns.set(model, line);
        return place;
      }
    }
    return null;
  }

  remove(place: QueuePlace<T>): void {
    const { turns } = this.#classOf(place.turn.priority);
    const line = turns.get(place.turn.model);
    if (line === undefined) return;
    this.#take(place, line);
    if (line.first === null) turns.delete(place.turn.model);
  }

  #take(place: QueuePlace<T>, line: WaitingLine<T>): void {
    line.remove(place);
    place.backlog = null;
    this.#size--;
  }

  #classOf(priority: number): PriorityClass<T> {
    const at = this.#classes.findIndex((one) => one.priority >= priority);
    const found = this.#classes[at];
    if (found?.priority === priority) return found;
    const one = { priority, turns: new Map<string, WaitingLine<T>>() };
    this.#classes.splice(at < 0 ? this.#classes.length : at, 0, one);
    return one;
  }
}
