import { Engine, type EngineSettings } from '../../../simulator/engine/engine';

/** A request to an engine in virtual time. */
export interface VirtualRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Called at the end of a step. */
export interface RequestEvents {
  onFirstToken(): void;
  onEnd(): void;
}

interface Sent extends VirtualRequest, RequestEvents {
  readonly blocks: readonly number[];
}

/** The engine of the simulator, in virtual time. */
export class VirtualEngine {
  readonly #engine: Engine<Sent>;

  constructor(settings: EngineSettings) {
    this.#engine = new Engine(settings);
  }

  /** When its present step ends, ms; Infinity while it is idle. */
  get nextMs(): number {
    return this.#engine.stepEndsAtMs ?? Infinity;
  }

  /** Runs the steps that end at or before `nowMs`. */
  advance(nowMs: number): void {
    for (const { request, tokens, done } of this.#engine.advance(nowMs)) {
      if (tokens === 1) request.onFirstToken();
      if (done) request.onEnd();
    }
  }

  submit(request: VirtualRequest, events: RequestEvents): void {
    const { promptTokens, outputTokens } = request;
    this.#engine.submit({ promptTokens, outputTokens, blocks: [], ...events });
  }
}
