import { BAND } from '../../../core/dispatch/queue/band';
import type { EngineShape } from './shapes';
import { VirtualEngine, type VirtualRequest } from './virtual-engine';
import { ControlledPool, DirectPool, type Pool } from './virtual-pool';

/** Users who arrive at random, beside a batch that always has lines. */
export interface PeopleScene {
  readonly shape: EngineShape;
  readonly engines: number;
  readonly seed: number;
  readonly isControlled: boolean;
  /** Lines that the batch keeps open, held or in flight; 0 for no batch. */
  readonly permits: number;
  /** When the batch begins, ms. */
  readonly batchFromMs: number;
  /** Load of users by time, as a share of the capacity. */
  loadAt(atMs: number): number;
  /** Requests per second that the engines can answer (`capacityOf`). */
  readonly capacity: number;
  readonly untilMs: number;
}

/** One answer. */
export interface Answered {
  readonly isUser: boolean;
  readonly sentMs: number;
  readonly ttftMs: number;
  readonly endMs: number;
  readonly tokens: number;
}

/** What is in flight at a moment. */
export interface Sample {
  readonly atMs: number;
  readonly users: number;
  readonly batch: number;
  readonly limit: number;
  readonly cap: number;
}

export interface PeopleResult {
  readonly answers: readonly Answered[];
  readonly samples: readonly Sample[];
}

const TICK_MS = 100;
const RATE_STEP_MS = 10;

/** Runs the scene in virtual time. The same seed gives the same users, whatever else happens. */
export function peopleBesideBatch(scene: PeopleScene): PeopleResult {
  return new Run(scene).run();
}

/** Requests per second of engines that always have `slots` requests each: the knee. */
export function capacityOf(shape: EngineShape, engines: number, untilMs = 120_000): number {
  const { answers } = peopleBesideBatch({
    ...{ shape, engines, seed: 1, isControlled: false, capacity: 0, untilMs },
    ...{ permits: engines * shape.engine.slots, batchFromMs: 0, loadAt: () => 0 },
  });
  const warm = answers.filter(({ endMs }) => endMs > untilMs / 2);
  return warm.length / (untilMs / 2_000);
}

class Run {
  readonly #scene: PeopleScene;
  readonly #engines: VirtualEngine[];
  readonly #pool: Pool;
  readonly #deferred: (() => void)[] = [];
  readonly #answers: Answered[] = [];
  readonly #samples: Sample[] = [];
  readonly #users: Requests;
  readonly #lines: Requests;
  #nowMs = 0;
  #open = 0;
  #usersOpen = 0;

  constructor(scene: PeopleScene) {
    this.#scene = scene;
    this.#engines = Array.from(
      { length: scene.engines },
      () => new VirtualEngine(scene.shape.engine),
    );
    this.#pool = scene.isControlled
      ? new ControlledPool(this.#engines, {
          now: () => this.#nowMs,
          defer: (run) => void this.#deferred.push(run),
        })
      : new DirectPool(this.#engines);
    this.#users = new Requests(scene.shape, scene.seed);
    this.#lines = new Requests(scene.shape, scene.seed + 1_000_003);
  }

  run(): PeopleResult {
    const { untilMs } = this.#scene;
    let arrivalMs = this.#nextArrival(0);
    let tickMs = 0;
    for (;;) {
      const engine = this.#engines.reduce((a, b) => (b.nextMs < a.nextMs ? b : a));
      this.#nowMs = Math.min(engine.nextMs, arrivalMs, tickMs);
      if (this.#nowMs >= untilMs) return { answers: this.#answers, samples: this.#samples };
      for (const one of this.#engines) one.advance(this.#nowMs);
      if (this.#nowMs >= tickMs) {
        tickMs += TICK_MS;
        this.#pool.tick();
        this.#fill();
        this.#sample();
      }
      if (this.#nowMs >= arrivalMs) {
        this.#send(this.#users.next(), true);
        arrivalMs = this.#nextArrival(arrivalMs);
      }
      for (let run = this.#deferred.shift(); run; run = this.#deferred.shift()) run();
    }
  }

  /** Poisson arrivals, by thinning in small steps of time. */
  #nextArrival(afterMs: number): number {
    const { loadAt, capacity, untilMs } = this.#scene;
    let left = this.#users.exponential();
    for (let atMs = afterMs; atMs < untilMs; atMs += RATE_STEP_MS) {
      const due = (loadAt(atMs) * capacity * RATE_STEP_MS) / 1_000;
      if (left < due) return atMs + (RATE_STEP_MS * left) / due;
      left -= due;
    }
    return Infinity;
  }

  #fill(): void {
    const { permits, batchFromMs } = this.#scene;
    if (this.#nowMs < batchFromMs) return;
    while (this.#open < permits) {
      this.#open++;
      this.#send(this.#lines.next(), false);
    }
  }

  #send(request: VirtualRequest, isUser: boolean): void {
    const sentMs = this.#nowMs;
    let firstMs: number | null = null;
    if (isUser) this.#usersOpen++;
    const band = isUser ? BAND.standard : BAND.sheddable;
    this.#pool.submit(request, band, {
      onFirstToken: () => void (firstMs = this.#nowMs),
      onEnd: () => {
        const tokens = request.promptTokens + request.outputTokens;
        const ttftMs = (firstMs ?? this.#nowMs) - sentMs;
        this.#answers.push({ isUser, sentMs, ttftMs, endMs: this.#nowMs, tokens });
        if (isUser) this.#usersOpen--;
        else this.#open--;
        this.#fill();
      },
    });
  }

  #sample(): void {
    const pool = this.#pool instanceof ControlledPool ? this.#pool.pool : null;
    const limit = pool?.backends.reduce((sum, one) => sum + one.limit.limit, 0) ?? 0;
    this.#samples.push({
      ...{ atMs: this.#nowMs, users: this.#usersOpen, limit, cap: pool?.sheddableCap ?? 0 },
      batch: this.#pool.batchInFlight,
    });
  }
}

/** Lognormal sizes, from a generator of their own. */
class Requests {
  readonly #shape: EngineShape;
  #state: number;

  constructor(shape: EngineShape, seed: number) {
    this.#shape = shape;
    this.#state = (seed % 2_147_483_646) + 1;
    for (let i = 0; i < 10; i++) this.uniform();
  }

  /** Lehmer's generator: uniform in (0, 1). */
  uniform(): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647;
    return this.#state / 2_147_483_647;
  }

  exponential(): number {
    return -Math.log(this.uniform());
  }

  next(): VirtualRequest {
    const { promptTokens, outputTokens } = this.#shape;
    return {
      promptTokens: this.#lognormal(promptTokens),
      outputTokens: this.#lognormal(outputTokens),
    };
  }

  #lognormal({ median, sigma }: { median: number; sigma: number }): number {
    const normal =
      Math.sqrt(-2 * Math.log(this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
    return Math.max(1, Math.round(median * Math.exp(sigma * normal)));
  }
}
