import type { HttpAttempt } from '../attempt';
import { Connection, type ConnectionOptions, type ConnectionOwner } from './connection';
import type { Http1Request } from './write-request';

/** What a pool needs beside what its connections need. */
export interface Http1PoolOptions extends Omit<ConnectionOptions, 'owner'> {
  /** Requests that can run at once; more wait for a connection. */
  readonly connections: number;
}

interface Waiting {
  readonly request: Http1Request;
  readonly attempt: HttpAttempt;
}

/** How often free connections are looked through, ms. */
const SWEEP_MS = 500;
/**
 * Beginning a connection takes some 100 µs. When 256 were begun in one turn, the first request waited for the last one:
 * 30 ms.
 */
const BEGUN_PER_TURN = 16;

/**
 * Connections to one origin, and the requests that wait for one. A request gets the connection that became free last, so
 * that no more stay open than are needed.
 *
 * A connection may carry the next request in the very turn in which an answer ended. A few servers close connections
 * without saying so. From the first request that fails for this reason, connections rest for a turn of the event loop, in
 * which their end arrives.
 */
export class Http1Pool implements ConnectionOwner {
  readonly #o: Http1PoolOptions;
  readonly #all = new Set<Connection>();
  readonly #opening = new Set<Connection>();
  /** How many were begun since the latest immediates of the event loop. */
  #begun = 0;
  /** Connections that {@link prepare} has asked for and that were not begun yet. */
  #wanted = 0;
  /** The one that became free last is the last one. */
  readonly #free: Connection[] = [];
  readonly #waiting: Waiting[] = [];
  #rests = false;
  #sweep: NodeJS.Timeout | null = null;
  #isDestroyed = false;

  constructor(options: Http1PoolOptions) {
    this.#o = options;
  }

  /** Sends a request, now or when a connection is there. */
  dispatch(request: Http1Request, attempt: HttpAttempt): void {
    if (this.#isDestroyed) return attempt.onError(closed());
    this.#waiting.push({ request, attempt });
    const connection = this.#takeFree();
    if (connection !== null) this.#serve(connection);
    else this.#openMore();
  }

  /** Opens connections until `count` are free, as far as the limit allows. It stops at the first that cannot be opened. */
  prepare(count: number): void {
    if (this.#isDestroyed) return;
    this.#wanted = Math.max(0, count - this.#free.length - this.#opening.size);
    this.#openMore();
  }

  /** Closes all connections. Requests in flight get no further call, and those that wait fail. */
  destroy(): Promise<void> {
    this.#isDestroyed = true;
    for (const { attempt } of this.#waiting.splice(0)) attempt.onError(closed());
    for (const connection of [...this.#all]) connection.destroy();
    if (this.#sweep !== null) clearTimeout(this.#sweep);
    return Promise.resolve();
  }

  onFree(connection: Connection): void {
    const isNew = this.#opening.delete(connection);
    if (isNew || !this.#rests) this.#serve(connection);
    else afterNextPoll(() => this.#serve(connection));
  }

  onClosed(connection: Connection, notOpened: Error | null): void {
    this.#all.delete(connection);
    this.#opening.delete(connection);
    const at = this.#free.indexOf(connection);
    if (at !== -1) this.#free.splice(at, 1);
    if (notOpened !== null) {
      this.#wanted = 0;
      this.#nextWaiting()?.attempt.onError(notOpened);
    }
    this.#openMore();
  }

  onStale(): void {
    this.#rests = true;
  }

  /** Sends what waits first, or keeps the connection for later. */
  #serve(connection: Connection): void {
    if (connection.isClosed) return;
    for (let next = this.#nextWaiting(); next !== null; next = this.#nextWaiting()) {
      if (connection.send(next.request, next.attempt)) return;
    }
    this.#free.push(connection);
    this.#sweep ??= setTimeout(() => this.#closeIdle(), SWEEP_MS).unref();
  }

  #nextWaiting(): Waiting | null {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (!next.attempt.isOver) return next;
    }
    return null;
  }

  #takeFree(): Connection | null {
    const connection = this.#free.pop() ?? null;
    if (connection === null || connection.idleUntilMs > performance.now()) return connection;
    // Those below it are free for longer.
    this.#closeIdle();
    connection.destroy();
    return null;
  }

  /**
   * A connection for each request that waits, and those that {@link prepare} wants, as far as the limits allow. The rest
   * follows in the next turns.
   */
  #openMore(): void {
    while (this.#needsMore && this.#begun < BEGUN_PER_TURN) {
      if (this.#begun++ === 0) setImmediate(() => this.#onTurn());
      this.#wanted = Math.max(0, this.#wanted - 1);
      const connection = new Connection({ ...this.#o, owner: this });
      this.#all.add(connection);
      this.#opening.add(connection);
    }
  }

  get #needsMore(): boolean {
    const isNeeded = this.#wanted > 0 || this.#opening.size < this.#waiting.length;
    return isNeeded && !this.#isDestroyed && this.#all.size < this.#o.connections;
  }

  #onTurn(): void {
    this.#begun = 0;
    this.#openMore();
  }

  #closeIdle(): void {
    if (this.#sweep !== null) clearTimeout(this.#sweep);
    this.#sweep = null;
    const nowMs = performance.now();
    const idle = this.#free.filter(({ idleUntilMs }) => idleUntilMs <= nowMs);
    for (const connection of idle) connection.destroy();
    if (this.#free.length > 0) {
      this.#sweep = setTimeout(() => this.#closeIdle(), SWEEP_MS).unref();
    }
  }
}

/** The first immediate still runs in the turn that read the answer, the second one after sockets were polled again. */
function afterNextPoll(callback: () => void): void {
  setImmediate(() => setImmediate(callback));
}

function closed(): Error {
  return new Error('the connections are closed');
}
