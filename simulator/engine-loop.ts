import {
  Engine,
  type EngineEvent,
  type EngineRequest,
  type EngineSettings,
  type EngineSnapshot,
} from './engine/engine';
import { ScaledClock } from './engine/scaled-clock';

/** A request to the engine that is told about each step. */
export interface LoopRequest extends EngineRequest {
  /** Must not throw. */
  onStep(event: EngineEvent<LoopRequest>): void;
}

/** Settings of the engine, and the faults that change its clock. */
export interface LoopSettings extends EngineSettings {
  readonly stall: boolean;
  readonly slowdown: number;
}

/**
 * Runs the engine in real time. One timer serves all requests: it fires at the end of the present step.
 * A timer that fires late does not slow the engine, which computes the ends of steps itself.
 */
export class EngineLoop {
  readonly #engine: Engine<LoopRequest>;
  readonly #clock = new ScaledClock(performance.now());
  /** Requests that have not ended. A cancelled one may still be in the events of one `advance`. */
  readonly #open = new Set<LoopRequest>();
  #timer: NodeJS.Timeout | null = null;
  /** End of the step that the timer waits for. */
  #armedForMs: number | null = null;

  constructor(settings: LoopSettings) {
    this.#engine = new Engine(settings);
    this.configure(settings);
  }

  configure(settings: LoopSettings): void {
    this.#clock.setRate(performance.now(), settings.stall ? 0 : 1 / settings.slowdown);
    this.#engine.configure(settings);
    // The timer was set for another speed.
    this.close();
    this.#run();
  }

  /** Takes a request; false if slots and queue are full. `onStep` may be called before it returns. */
  submit(request: LoopRequest): boolean {
    this.#run();
    if (!this.#engine.submit(request)) return false;
    this.#open.add(request);
    this.#run();
    return true;
  }

  /** Forgets a request; it gets no more calls. */
  cancel(request: LoopRequest): void {
    this.#open.delete(request);
    this.#engine.cancel(request);
    this.#arm();
  }

  snapshot(): EngineSnapshot {
    return this.#engine.snapshot();
  }

  /** Stops the timer. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #run(): void {
    const events = this.#engine.advance(this.#clock.read(performance.now()));
    this.#arm();
    for (const event of events) {
      if (!this.#open.has(event.request)) continue;
      if (event.done) this.#open.delete(event.request);
      event.request.onStep(event);
    }
  }

  #arm(): void {
    const { stepEndsAtMs } = this.#engine;
    if (this.#timer !== null && stepEndsAtMs === this.#armedForMs) return;
    this.close();
    if (stepEndsAtMs === null) return;
    const waitMs = this.#clock.wallMsUntil(stepEndsAtMs);
    if (waitMs === null) return;
    this.#armedForMs = stepEndsAtMs;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#run();
    }, waitMs);
  }
}
