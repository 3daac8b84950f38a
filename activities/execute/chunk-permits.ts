import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { AcquireRequest, Permit, PermitWait } from '../../inference/dispatcher';
import type { Route } from '../../inference/registry';
import type { AdmissionQueue } from './admission-queue';
import type { Chunk } from './chunk';
import type { LineCosts } from './chunk-costs';
import type { ChunkExit } from './chunk-exit';
import type { ChunkLine } from './chunk-ledger';
import type { ExecuteDispatcher } from './deps';

/** What a chunk needs to get permits. */
export interface ChunkPermitsOptions {
  readonly chunk: Chunk;
  readonly route: Route;
  readonly dispatcher: ExecuteDispatcher;
  readonly admissionQueue: AdmissionQueue;
  readonly exit: ChunkExit;
  readonly costs: LineCosts;
}

const MIN_FIRST_WAIT_MS = 10_000;
/** A chunk that may wait at the server gives up sooner: another worker may have a permit by now. */
const MAX_FIRST_WAIT_MS = 30_000;

/**
 * The permits of one chunk's requests. A chunk that has had a permit waits for further ones until it
 * exits. For its first permit it needs a place in the admission queue and waits only for a limited time.
 * Then the process is considered full, and the chunk goes back to its lane or to the server
 * (docs/design/execution.md#waiting-inside-a-process).
 */
export class ChunkPermits {
  readonly #o: ChunkPermitsOptions;
  /** One for all requests of the chunk, which differ only in cost and order: the dispatcher does not keep it. */
  readonly #request: { -readonly [Key in keyof AcquireRequest]: AcquireRequest[Key] };
  /** On the monotonic clock. */
  readonly #startedMs = performance.now();
  #hadPermit = false;
  #waiting: Waiting | null = null;

  constructor(options: ChunkPermitsOptions) {
    this.#o = options;
    const { chunk, route } = options;
    this.#request = {
      tenant: chunk.tenant,
      batch: chunk.batchId,
      model: route.limiterKey,
      ...(route.gatewayLimit === undefined ? {} : { gateway: route.gatewayLimit }),
      priority: chunk.priority,
      divides: route.gateway.send_fairness_header,
      order: 0,
      cost: 1,
    };
  }

  get isWaiting(): boolean {
    return this.#waiting !== null;
  }

  /** Takes a permit to send a line if one is free now, and the line's cost is known. */
  tryAcquire(line: ChunkLine): Permit | null {
    const cost = this.#o.costs.expected(line);
    if (cost === null) return null;
    const permit = this.#o.dispatcher.tryAcquire(this.#requestOf(cost));
    if (permit !== null) this.#hadPermit = true;
    return permit;
  }

  /**
   * Waits for a permit to send a line; only one line at a time may wait.
   *
   * @param onEnd called once, with null if the chunk exits first, or gives up its wait for the first permit
   */
  wait(line: ChunkLine, onEnd: (permit: Permit | null) => void): void {
    const waiting: Waiting = { onEnd, asked: null, first: null };
    this.#waiting = waiting;
    if (!this.#hadPermit && !this.#enterQueue(waiting)) return;
    const cost = this.#o.costs.expected(line);
    if (cost === null) void this.#learn(line, waiting);
    else this.#ask(cost, waiting);
  }

  /** The chunk exits: ends the wait. */
  stop(): void {
    if (this.#waiting !== null) this.#end(this.#waiting, null);
  }

  /** Takes a place for the wait for a first permit. Without one, the chunk exits. */
  #enterQueue(waiting: Waiting): boolean {
    const { admissionQueue, route, chunk, exit } = this.#o;
    // The exit ends the wait.
    const giveUp = (): void => exit.exit(EXIT_REASON.noPermit);
    if (admissionQueue.enter(route.limiterKey, chunk.tenant)) {
      waiting.first = setTimeout(giveUp, firstWaitMs(chunk));
      return true;
    }
    giveUp();
    return false;
  }

  async #learn(line: ChunkLine, waiting: Waiting): Promise<void> {
    const cost = await this.#o.costs.learn(line);
    if (this.#waiting === waiting) this.#ask(cost, waiting);
  }

  #ask(cost: number, waiting: Waiting): void {
    waiting.asked = this.#o.dispatcher.wait(this.#requestOf(cost), (permit) => {
      this.#hadPermit = true;
      this.#end(waiting, permit);
    });
  }

  #end(waiting: Waiting, permit: Permit | null): void {
    this.#waiting = null;
    if (permit === null) waiting.asked?.stop();
    if (waiting.first !== null) {
      const { admissionQueue, route, chunk } = this.#o;
      clearTimeout(waiting.first);
      admissionQueue.leave(route.limiterKey, chunk.tenant);
    }
    waiting.onEnd(permit);
  }

  /**
   * After its first permit, a chunk waits behind older ones of its batch, so that chunks end one after the other: while
   * one is sealed, the next one sends (docs/design/permits.md#fair-turns).
   */
  #requestOf(cost: number): AcquireRequest {
    this.#request.order = this.#hadPermit ? this.#startedMs : 0;
    this.#request.cost = cost;
    return this.#request;
  }
}

/** The wait for one permit. */
interface Waiting {
  readonly onEnd: (permit: Permit | null) => void;
  /** Null while the cost of the line is not known. */
  asked: PermitWait | null;
  /** Ends the wait for a first permit, which has a place in the admission queue; null for any other. */
  first: NodeJS.Timeout | null;
}

function firstWaitMs({ mayWait, p95Ms }: Chunk): number {
  const waitMs = Math.max(MIN_FIRST_WAIT_MS, p95Ms ?? 0);
  return mayWait ? Math.min(waitMs, MAX_FIRST_WAIT_MS) : waitMs;
}
