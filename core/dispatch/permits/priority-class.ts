import { StartTags } from '../queue/start-tags';
import { BatchLine, PermitTurn, type PermitRequest } from './permit-turn';
import { ShareTable } from './share-table';

/**
 * The requests of one tenant and priority at one limit. Its batches share by cost, in the order of
 * {@link StartTags}; within a batch, its oldest chunk goes first (docs/design/permits.md#fair-turns).
 */
export class PriorityClass<W, T> {
  readonly #tenant: T;
  readonly #priority: number;
  readonly #tags = new StartTags<BatchLine<W, T>>();
  readonly #lines = new ShareTable<BatchLine<W, T>>(
    (line) => line.isIdle && line.finish <= this.#tags.virtualTime,
  );
  #open = 0;
  #waiting = 0;

  constructor(tenant: T, priority: number) {
    this.#tenant = tenant;
    this.#priority = priority;
  }

  /** Requests that wait. */
  get size(): number {
    return this.#waiting;
  }

  /** Batches whose requests wait or hold a permit. */
  *batches(): Iterable<BatchLine<W, T>> {
    for (const line of this.#lines) if (!line.isIdle) yield line;
  }

  /** A request that does not wait yet. */
  turnOf(owner: W, request: PermitRequest): PermitTurn<W, T> {
    const { batch } = request;
    const line =
      this.#lines.find(batch) ??
      this.#lines.add(batch, new BatchLine(this.#tenant, batch, this.#priority));
    return new PermitTurn(owner, line, request);
  }

  push(turn: PermitTurn<W, T>, end: 'back' | 'front'): void {
    const { line } = turn;
    if (end === 'back') line.wait(turn);
    else line.waiting.pushFront(turn);
    this.#waiting++;
    if (line.slot === -1) this.#tags.join(line);
  }

  /** Takes the request whose turn it is, and charges its batch; null if none waits. */
  shift(): PermitTurn<W, T> | null {
    const line = this.#tags.first;
    const turn = line?.waiting.first;
    if (line === undefined || turn == null) return null;
    line.waiting.remove(turn);
    this.#waiting--;
    this.#tags.serve(line, { sequence: 0, cost: turn.charge, tag: 0 }, false);
    if (line.waiting.size > 0) this.#tags.retag(line);
    else this.#tags.leave(line);
    this.#tags.rebase(this.#lines);
    this.#open++;
    line.open++;
    return turn;
  }

  /** A request gets its permit without waiting. */
  charge({ line, cost }: PermitTurn<W, T>): void {
    this.#tags.charge(line, cost);
    this.#open++;
    line.open++;
  }

  /** A request stops waiting without a turn. */
  remove(turn: PermitTurn<W, T>): void {
    const { line } = turn;
    if (!line.waiting.remove(turn)) return;
    this.#waiting--;
    if (line.waiting.size === 0) this.#tags.leave(line);
    this.#onEnd();
  }

  /** A permit is given back; its request cost `difference` more than it was charged. */
  end(line: BatchLine<W, T>, difference: number): void {
    line.open--;
    this.#open--;
    if (difference !== 0) this.#tags.correct(line, difference);
    this.#onEnd();
  }

  #onEnd(): void {
    if (this.#open === 0 && this.#waiting === 0) this.#tags.onIdle();
  }
}
