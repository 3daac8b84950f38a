import type { ServerResponse } from 'node:http';
import { sendJson } from '../json-exchange';
import type { ModelMetrics } from '../metrics';
import type { StreamOptions } from '../request';
import type { Traffic } from '../traffic';
import { EventStream } from './event-stream';
import type { Generation } from './generation';

/** What an answer is sent to and counted in. */
export interface ModelAnswerOptions {
  readonly response: ServerResponse;
  readonly generation: Generation;
  /** How to stream it; `null` sends it as a whole. */
  readonly stream: StreamOptions | null;
  /** Whether to close the connection in the middle of the answer. */
  readonly isCut: boolean;
  readonly traffic: Traffic;
  readonly metrics: ModelMetrics;
}

/** One answer on its way to the client: as a whole at the end, or token by token. */
export class ModelAnswer {
  readonly #options: ModelAnswerOptions;
  readonly #startedAtMs = performance.now();
  /** After this many tokens the connection is closed. */
  readonly #cutAtTokens: number | null;
  #stream: EventStream | null = null;
  #hasFirstToken = false;
  #isOver = false;

  constructor(options: ModelAnswerOptions) {
    this.#options = options;
    const { isCut, generation } = options;
    this.#cutAtTokens = isCut ? Math.floor(generation.outputTokens / 2) : null;
  }

  /** Sends the headers of a stream, which come before the first token. Does nothing the second time. */
  begin(): void {
    const { response, generation, stream } = this.#options;
    if (this.#isOver || this.#stream !== null || stream === null) return;
    if (generation.stream === null) return;
    this.#stream = new EventStream(response, generation, generation.stream(), stream);
  }

  /** Sends what a stream may send of the first `tokens` tokens. Returns false if the connection was cut. */
  generated(tokens: number): boolean {
    this.begin();
    this.#countFirstToken(this.#seconds());
    const cutAt = this.#cutAtTokens;
    this.#stream?.generated(Math.min(tokens, cutAt ?? tokens));
    if (cutAt === null || tokens < cutAt) return true;
    this.#cut();
    return false;
  }

  /** Sends the rest and ends the answer, or cuts the connection. */
  finish(cachedTokens: number): void {
    const { response, generation, traffic, metrics } = this.#options;
    if (this.#cutAtTokens !== null) return void this.generated(generation.outputTokens);
    this.begin();
    const seconds = this.#seconds();
    this.#countFirstToken(seconds);
    this.#isOver = true;
    traffic.answered(generation);
    metrics.answered(generation, seconds);
    if (this.#stream === null) sendJson(response, 200, generation.body(cachedTokens));
    else this.#stream.end(cachedTokens);
  }

  /** What was sent reaches the client, and then the connection ends without the end of the answer. */
  #cut(): void {
    const { response, traffic } = this.#options;
    this.#isOver = true;
    traffic.cutOff();
    response.socket?.destroySoon();
  }

  /** Since the request. */
  #seconds(): number {
    return (performance.now() - this.#startedAtMs) / 1_000;
  }

  #countFirstToken(seconds: number): void {
    if (this.#hasFirstToken) return;
    this.#hasFirstToken = true;
    this.#options.metrics.firstToken(seconds);
  }
}
