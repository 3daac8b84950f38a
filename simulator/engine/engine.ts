import { BLOCK_TOKENS, PrefixCache } from './prefix-cache';

/** How large and how fast the engine is. */
export interface EngineSettings {
  /** Requests that run at once; 0 for no limit. */
  readonly slots: number;
  /** Requests that wait for a slot; the next one is refused. */
  readonly maxQueue: number;
  /** Duration of a step without requests, ms. */
  readonly stepBaseMs: number;
  /** What each request in a step adds to it, ms. */
  readonly stepGrowthMs: number;
  /** What each computed prompt token adds to a step, ms. */
  readonly prefillMsPerToken: number;
  /** Prompt tokens that one step computes at most; at least 1. */
  readonly prefillTokensPerStep: number;
  /** Tokens that the prefix cache holds; only complete blocks count. */
  readonly cacheTokens: number;
}

/** One request to the engine. The object itself identifies it. */
export interface EngineRequest {
  readonly promptTokens: number;
  /** Names of the complete blocks of the prompt. */
  readonly blocks: readonly number[];
  /** Tokens to generate; 0 for a request that only has a prompt. */
  readonly outputTokens: number;
}

/** What one step did for one request. */
export interface EngineEvent<R extends EngineRequest> {
  readonly request: R;
  /** When the step ended, ms. */
  readonly atMs: number;
  /** Tokens generated so far. */
  readonly tokens: number;
  /** Prompt tokens that came from the prefix cache. */
  readonly cachedTokens: number;
  /** Whether this was the last step of the request. */
  readonly done: boolean;
}

/** State and counters of the engine, for metrics. */
export interface EngineSnapshot {
  readonly running: number;
  readonly waiting: number;
  readonly cachedBlocks: number;
  /** Share of the cache's size that prompts and answers of running requests would fill, 0 to 1. */
  readonly kvUsage: number;
  /** Prompt tokens of all requests that were looked up in the prefix cache. */
  readonly queriedTokens: number;
  /** Those of them that were found. */
  readonly hitTokens: number;
}

interface Running<R> {
  readonly request: R;
  /** Prompt tokens still to be computed; `null` before the lookup in the prefix cache. */
  prefillLeft: number | null;
  cachedTokens: number;
  tokens: number;
  /** Prompt tokens that the present step computes. */
  prefilling: number;
}

/**
 * An inference engine with continuous batching, as a state machine without a clock
 * (docs/design/simulator.md#engine). Time is what the latest `advance` said; all other calls happen then.
 */
export class Engine<R extends EngineRequest> {
  #settings: EngineSettings;
  readonly #cache: PrefixCache;
  readonly #running = new Map<R, Running<R>>();
  readonly #waiting = new Set<R>();
  #nowMs = 0;
  #stepEndsAtMs: number | null = null;
  #queriedTokens = 0;
  #hitTokens = 0;

  constructor(settings: EngineSettings) {
    this.#settings = settings;
    this.#cache = new PrefixCache(cacheBlocks(settings));
  }

  /** When the present step ends, ms; `null` while the engine is idle. */
  get stepEndsAtMs(): number | null {
    return this.#stepEndsAtMs;
  }

  /** Requests that run keep their slots, even if there are fewer now. A step that has begun keeps its end. */
  configure(settings: EngineSettings): void {
    this.#settings = settings;
    this.#cache.resize(cacheBlocks(settings));
    this.#fillSlots();
  }

  /** Takes a request, first come first served. Returns false if all slots and the queue are full. */
  submit(request: R): boolean {
    if (!this.#hasFreeSlot() && this.#waiting.size >= this.#settings.maxQueue) return false;
    this.#waiting.add(request);
    this.#fillSlots();
    return true;
  }

  /** Forgets a request in any state. Its slot is free at once. */
  cancel(request: R): void {
    if (!this.#waiting.delete(request)) this.#running.delete(request);
    this.#fillSlots();
  }

  /** Runs all steps that end at or before `nowMs` and returns what they did, in order. */
  advance(nowMs: number): EngineEvent<R>[] {
    const events: EngineEvent<R>[] = [];
    while (this.#stepEndsAtMs !== null && this.#stepEndsAtMs <= nowMs) {
      this.#endStep(this.#stepEndsAtMs, events);
    }
    this.#nowMs = nowMs;
    return events;
  }

  snapshot(): EngineSnapshot {
    let blocks = 0;
    for (const { request, tokens } of this.#running.values()) {
      blocks += Math.ceil((request.promptTokens + tokens) / BLOCK_TOKENS);
    }
    const capacity = cacheBlocks(this.#settings);
    return {
      running: this.#running.size,
      waiting: this.#waiting.size,
      cachedBlocks: this.#cache.size,
      kvUsage: capacity === 0 ? 0 : Math.min(1, blocks / capacity),
      queriedTokens: this.#queriedTokens,
      hitTokens: this.#hitTokens,
    };
  }

  #hasFreeSlot(): boolean {
    const { slots } = this.#settings;
    return slots === 0 || this.#running.size < slots;
  }

  /** Requests that get a slot during a step take part from the next one on. */
  #fillSlots(): void {
    for (const request of this.#waiting) {
      if (!this.#hasFreeSlot()) break;
      this.#waiting.delete(request);
      const unstarted = { prefillLeft: null, cachedTokens: 0, tokens: 0, prefilling: 0 };
      this.#running.set(request, { request, ...unstarted });
    }
    if (this.#stepEndsAtMs === null) this.#beginStep(this.#nowMs);
  }

  /**
   * Prompts are computed in the order of arrival until the step has its number of prompt tokens. The others
   * wait, and are looked up in the cache only when their turn comes: by then more of it may be filled.
   */
  #beginStep(atMs: number): void {
    this.#stepEndsAtMs = null;
    if (this.#running.size === 0) return;
    const { stepBaseMs, stepGrowthMs, prefillMsPerToken, prefillTokensPerStep } = this.#settings;
    let prefill = 0;
    let members = 0;
    for (const one of this.#running.values()) {
      const left = prefillTokensPerStep - prefill;
      if (left === 0 && one.prefillLeft !== 0) continue;
      one.prefilling = Math.min(left, (one.prefillLeft ??= this.#lookUp(one)));
      prefill += one.prefilling;
      members++;
    }
    this.#stepEndsAtMs = atMs + stepBaseMs + stepGrowthMs * members + prefillMsPerToken * prefill;
  }

  /** @returns the prompt tokens to compute: at least the last one, whose result is the first output token */
  #lookUp(one: Running<R>): number {
    const { promptTokens, blocks } = one.request;
    const usable = Math.max(0, Math.floor((promptTokens - 1) / BLOCK_TOKENS));
    one.cachedTokens = this.#cache.hits(blocks.slice(0, usable)) * BLOCK_TOKENS;
    this.#queriedTokens += promptTokens;
    this.#hitTokens += one.cachedTokens;
    return promptTokens - one.cachedTokens;
  }

  #endStep(atMs: number, events: EngineEvent<R>[]): void {
    for (const one of this.#running.values()) {
      // Not part of this step: it came later, or there was no room for its prompt.
      if (one.prefillLeft === null) continue;
      const isPrefill = one.tokens === 0;
      one.prefillLeft -= one.prefilling;
      if (one.prefillLeft > 0) continue;
      const { request, cachedTokens } = one;
      if (isPrefill) this.#cache.insert(request.blocks);
      if (one.tokens < request.outputTokens) one.tokens++;
      const done = one.tokens >= request.outputTokens;
      if (done) this.#running.delete(request);
      events.push({ request, atMs, tokens: one.tokens, cachedTokens, done });
    }
    this.#nowMs = atMs;
    this.#stepEndsAtMs = null;
    this.#fillSlots();
  }
}

function cacheBlocks({ cacheTokens }: EngineSettings): number {
  return Math.floor(cacheTokens / BLOCK_TOKENS);
}
