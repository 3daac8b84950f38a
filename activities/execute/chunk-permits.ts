import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { AcquireRequest, Permit } from '../../inference/dispatcher';
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
  /** Without its cost. */
  readonly #request: AcquireRequest;
  #hadPermit = false;
  #isWaiting = false;

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
    };
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /**
   * Takes a permit to send a line if one is free now, and the line's cost is known. Synchronous, because it runs for
   * every request.
   */
  tryAcquire(line: ChunkLine): Permit | null {
    const cost = this.#o.costs.expected(line);
    if (cost === null) return null;
    const permit = this.#o.dispatcher.tryAcquire({ ...this.#request, cost });
    if (permit !== null) this.#hadPermit = true;
    return permit;
  }

  /** Waits for a permit to send a line. Null if the chunk exits first, or gives up its wait for the first one. */
  async acquire(line: ChunkLine): Promise<Permit | null> {
    this.#isWaiting = true;
    const permit = await (this.#hadPermit ? this.#wait(line) : this.#waitForFirst(line));
    this.#isWaiting = false;
    if (permit !== null) this.#hadPermit = true;
    return permit;
  }

  async #wait(line: ChunkLine): Promise<Permit | null> {
    const { dispatcher, exit, costs } = this.#o;
    try {
      const cost = costs.expected(line) ?? (await costs.learn(line));
      const permit = await dispatcher.acquire({ ...this.#request, cost }, exit.exiting);
      if (exit.reason === null) return permit;
      permit.release();
      return null;
    } catch {
      return null;
    }
  }

  async #waitForFirst(line: ChunkLine): Promise<Permit | null> {
    const { admissionQueue, route, chunk, exit } = this.#o;
    const giveUp = (): void => exit.exit(EXIT_REASON.noPermit);
    if (!admissionQueue.enter(route.limiterKey, chunk.tenant)) {
      giveUp();
      return null;
    }
    const timer = setTimeout(giveUp, firstWaitMs(chunk));
    try {
      return await this.#wait(line);
    } finally {
      clearTimeout(timer);
      admissionQueue.leave(route.limiterKey, chunk.tenant);
    }
  }
}

function firstWaitMs({ mayWait, p95Ms }: Chunk): number {
  const waitMs = Math.max(MIN_FIRST_WAIT_MS, p95Ms ?? 0);
  return mayWait ? Math.min(waitMs, MAX_FIRST_WAIT_MS) : waitMs;
}
