import { chooseBackend, comparedLimits } from '../../core/dispatch/backends/backend-choice';
import type { HarmGuard } from '../../core/dispatch/backends/harm-guard';
import type { PrefixIndex } from '../../core/dispatch/backends/prefix-index';
import type { TokenCosts } from '../../core/dispatch/cost';
import type { PoolSettings } from '../../core/dispatch/pool/pool-settings';
import {
  RequestQueueController,
  type ControllerPorts,
} from '../../core/dispatch/pool/request-queue-controller';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import type { QueuedRequest } from '../../core/dispatch/queue/queued-request';
import type { ChainReader } from '../../core/plan/prefix-chain';
import type { PromptBytes } from '../../core/openai/prompt-bytes';
import type { PoolModels } from '../models/pool-models';
import type { PoolBackend } from './pool-backend';

/** Time limits of exchanges with a backend, ms. */
export interface ExchangeLimits {
  readonly requestTimeoutMs: number;
  readonly stallTimeoutMs: number;
}

/** What a {@link GatewayPool} is made of. */
export interface GatewayPoolParts {
  readonly name: string;
  /** Names of its models; `*` stands for all that no pool names. */
  readonly models: readonly string[];
  /** What its backends list; null unless it is the pool of `*`. */
  readonly listed: PoolModels | null;
  readonly backends: readonly PoolBackend[];
  readonly limits: ExchangeLimits;
  readonly settings: PoolSettings;
  /** Whether the bounds of the stock are set, so that learnt limits do not hold requests back. */
  readonly isStatic: boolean;
  readonly costs: TokenCosts;
  readonly guard: HarmGuard;
  readonly prefixes: PrefixIndex<PoolBackend>;
  readonly readChain: ChainReader;
  /** `affinity.load_bound`. */
  readonly loadBound: number;
  readonly ports: Omit<ControllerPorts, 'mayDispatch'>;
}

/** How a backend is chosen for one request. */
export interface ChoiceOptions {
  readonly band: Band;
  readonly prompt: PromptBytes;
  /** Backends that this request was sent to in vain. */
  readonly tried: ReadonlySet<string>;
}

/** Places kept free for users, in square roots of the number of users in flight. */
const RESERVE = 3;

/** A pool of backends with its queue: who may be sent, and where to (docs/design/flow-control.md). */
export class GatewayPool {
  readonly name: string;
  readonly models: readonly string[];
  readonly listed: PoolModels | null;
  readonly backends: readonly PoolBackend[];
  readonly limits: ExchangeLimits;
  readonly queueLimits: PoolSettings['fairRequestQueue'];
  readonly controller: RequestQueueController;
  readonly guard: HarmGuard;
  /** Whether the bounds of the stock are set, and not learnt. */
  readonly isStatic: boolean;
  readonly costs: TokenCosts;
  /** Whether requests in flight may be aborted for others. */
  readonly reclaims: boolean;
  readonly #parts: GatewayPoolParts;
  /** Key of requests with a short prompt: they are spread in turn. */
  #turn = 0;
  #sheddableCap = Infinity;

  constructor(parts: GatewayPoolParts) {
    const { name, models, backends, limits, settings, guard, ports } = parts;
    this.name = name;
    this.models = models;
    this.listed = parts.listed;
    this.limits = limits;
    this.queueLimits = settings.fairRequestQueue;
    this.backends = backends;
    this.guard = guard;
    this.isStatic = parts.isStatic;
    this.costs = parts.costs;
    this.reclaims = settings.requestQueueController.reclaim;
    this.#parts = parts;
    this.controller = new RequestQueueController(settings, {
      ...ports,
      mayDispatch: (request) => this.#hasPlaceFor(request),
    });
    this.refresh();
  }

  get readyBackends(): number {
    return this.backends.filter(({ isReady }) => isReady).length;
  }

  /** How many sheddable requests may be in flight, besides the ceiling of their band. */
  get sheddableCap(): number {
    return this.#sheddableCap;
  }

  /** To be called every 100 ms. */
  tick(): void {
    this.refresh();
    this.controller.tick();
  }

  /** Tells the controller what the backends can take. To be called when a limit or their readiness changed. */
  refresh(): void {
    const { readyBackends, learnt, limit } = this.#readyLimits();
    const { ceilings, floor } = this.#parts.settings.bands;
    const inFlight = this.controller.inFlight(BAND.sheddable);
    const share = { limit: learnt, ceiling: ceilings[BAND.sheddable] * learnt, inFlight };
    // Static bounds ignore what is learnt, also for the share of batches.
    this.#sheddableCap = this.isStatic
      ? Infinity
      : Math.max(1, this.guard.cap({ ...share, floor: floor * learnt }, this.#nowMs()));
    if (this.guard.isEngineQueueing) {
      const nowMs = this.#nowMs();
      for (const backend of this.backends) if (backend.isReady) backend.limit.onEngineQueue(nowMs);
    }
    const { sheddableCap } = this;
    const sheddableLimit = this.#isSlowStart() ? learnt : this.#sheddableLimit(learnt);
    this.controller.updatePool({ readyBackends, limit, sheddableLimit, learnt, sheddableCap });
  }

  /** The backend to send a request to; null if none is ready and has room. */
  choose({ band, prompt, tried }: ChoiceOptions): PoolBackend | null {
    const [only] = this.backends;
    if (only !== undefined && this.backends.length === 1) {
      return only.isReady && this.#hasRoom(only, band) && !tried.has(only.id) ? only : null;
    }
    const { prefixes, readChain, loadBound } = this.#parts;
    const chain = readChain(prompt);
    // A limit that is not learnt yet says nothing about what the backend can take.
    const limits = this.backends.map(({ limit: one }) =>
      one.isSlowStart ? one.mostInFlight : one.limit,
    );
    const compared = comparedLimits(limits);
    const candidates = this.backends.map((backend, i) => ({
      backend,
      id: backend.id,
      isReady: backend.isReady,
      hasRoom: this.#hasRoom(backend, band),
      inFlight: backend.inFlight,
      limit: compared[i] ?? 0,
      match: prefixes.match(backend, chain),
    }));
    // The chain of a short prompt has no block; its buffer holds one of an earlier prompt.
    const first = chain.length > 0 ? chain.blocks[0] : undefined;
    const key = first ?? this.#turn++;
    const promptBlocks = chain.length;
    const chosen =
      chooseBackend(candidates, { loadBound, promptBlocks, key, tried })?.backend ?? null;
    if (chosen !== null && chain.length > 0) prefixes.onSent(chosen, chain);
    return chosen;
  }

  /** A backend begins to answer a request, so it has computed the prompt. */
  onAnswerBegun(backend: PoolBackend, prompt: PromptBytes): void {
    if (this.backends.length === 1) return;
    const { prefixes, readChain } = this.#parts;
    const chain = readChain(prompt);
    if (chain.length > 0) prefixes.onComputed(backend, chain);
  }

  /** A stream of a band above `sheddable` got its first byte from `backend`. */
  onFirstByte(backend: PoolBackend, stream: { promptTokens: number; ttfbMs: number }): void {
    const nowMs = this.#nowMs();
    this.guard.onFirstByte({ ...stream, nowMs });
    backend.ttfb.add(stream.ttfbMs, nowMs);
  }

  /** A backend became ready, or stopped being so. Its cache may be lost. */
  onReadyChanged(backend: PoolBackend): void {
    this.#parts.prefixes.forget(backend);
    this.refresh();
  }

  /** What the ready backends can take together. One loop, because each end of a request calls it. */
  #readyLimits() {
    const found = { readyBackends: 0, learnt: 0, limit: 0 };
    for (const { isReady, limit } of this.backends) {
      if (!isReady) continue;
      found.readyBackends++;
      found.learnt += limit.limit;
      found.limit += limit.mostInFlight;
    }
    return found;
  }

  /** Whether the limit of a ready backend is not learnt yet. */
  #isSlowStart(): boolean {
    return this.backends.some((backend) => backend.isReady && backend.limit.isSlowStart);
  }

  /**
   * Sheddable requests leave places for the users who will come. The number of users in flight varies at random by
   * about its square root, so this many times the root is kept free (docs/design/flow-control.md#bands).
   */
  #sheddableLimit(learnt: number): number {
    const { controller } = this;
    const users = controller.inFlight(BAND.critical) + controller.inFlight(BAND.standard);
    return learnt - RESERVE * Math.sqrt(users);
  }

  #hasPlaceFor({ band }: QueuedRequest): boolean {
    return this.backends.some((backend) => backend.isReady && this.#hasRoom(backend, band));
  }

  #hasRoom({ limit, isBusy }: PoolBackend, band: Band): boolean {
    const isSheddable = band === BAND.sheddable;
    if (isSheddable && isBusy) return false;
    // A reading of the clock costs more than the rest, and most backends never paused.
    const nowMs = limit.pausedUntilMs === 0 ? 0 : this.#nowMs();
    if (this.isStatic) return nowMs >= limit.pausedUntilMs;
    return limit.hasRoom({ isSheddable, nowMs });
  }

  #nowMs(): number {
    return this.#parts.ports.now();
  }
}
