import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { AcquireRequest, Permit } from '../../inference/dispatcher';
import type { Route } from '../../inference/registry';
import type { AdmissionQueue } from './admission-queue';
import type { Chunk } from './chunk';
import type { ChunkExit } from './chunk-exit';
import type { ExecuteDispatcher } from './deps';

/** What a chunk needs to get permits. */
export interface ChunkPermitsOptions {
  readonly chunk: Chunk;
  readonly route: Route;
  readonly dispatcher: ExecuteDispatcher;
  readonly admissionQueue: AdmissionQueue;
  readonly exit: ChunkExit;
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
  readonly #request: AcquireRequest;
  #hadPermit = false;
  #isWaiting = false;

  constructor(options: ChunkPermitsOptions) {
    this.#o = options;
    const { chunk, route } = options;
    this.#request = {
      tenant: chunk.tenant,
      model: route.limiterKey,
      ...(route.gatewayLimit === undefined ? {} : { gateway: route.gatewayLimit }),
      priority: chunk.priority,
    };
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Takes a permit if one is free now. Synchronous, because it runs for every request. */
  tryAcquire(): Permit | null {
    const permit = this.#o.dispatcher.tryAcquire(this.#request);
    if (permit !== null) this.#hadPermit = true;
    return permit;
  }

  /** Waits for a permit. Null if the chunk exits first, or gives up its wait for the first one. */
  async acquire(): Promise<Permit | null> {
    this.#isWaiting = true;
    const permit = await (this.#hadPermit ? this.#wait() : this.#waitForFirst());
    this.#isWaiting = false;
    if (permit !== null) this.#hadPermit = true;
    return permit;
  }

  async #wait(): Promise<Permit | null> {
    const { dispatcher, exit } = this.#o;
    try {
      const permit = await dispatcher.acquire(this.#request, exit.exiting);
      if (exit.reason === null) return permit;
      permit.release();
      return null;
    } catch {
      return null;
    }
  }

  async #waitForFirst(): Promise<Permit | null> {
    const { admissionQueue, route, chunk, exit } = this.#o;
    const giveUp = (): void => exit.exit(EXIT_REASON.noPermit);
    if (!admissionQueue.enter(route.limiterKey, chunk.tenant)) {
      giveUp();
      return null;
    }
    const timer = setTimeout(giveUp, firstWaitMs(chunk));
    try {
      return await this.#wait();
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
