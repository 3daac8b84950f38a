/** Request ids that are remembered; beyond this, the oldest are forgotten. */
const MAX_REMEMBERED = 200_000;

/** Counts requests for `GET /simulator/stats`. */
export class Traffic {
  #requests = 0;
  #inFlight = 0;
  #maxInFlight = 0;
  #aborted = 0;
  #repeated = 0;
  #connections = 0;
  #inputTokens = 0;
  #outputTokens = 0;
  #firstAtMs: number | null = null;
  #lastAtMs: number | null = null;
  readonly #byStatus = new Map<number, number>();
  readonly #byEndpoint = new Map<string, number>();
  readonly #byModel = new Map<string, number>();
  readonly #tries = new Map<string, number>();

  /** Requests to model endpoints without an answer yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  connected(): void {
    this.#connections++;
  }

  /** Counts a new request. @returns how many requests with this id have begun, including this one */
  began(endpoint: string, requestId: string | undefined): number {
    this.#requests++;
    this.#inFlight++;
    this.#maxInFlight = Math.max(this.#maxInFlight, this.#inFlight);
    this.#lastAtMs = Date.now();
    this.#firstAtMs ??= this.#lastAtMs;
    count(this.#byEndpoint, endpoint);
    return requestId === undefined ? 1 : this.#remember(requestId);
  }

  /** Counts a valid request for a model. */
  asked(model: string): void {
    count(this.#byModel, model);
  }

  /** Counts an answer with the tokens that it was made of. */
  answered(tokens: { readonly promptTokens: number; readonly outputTokens: number }): void {
    this.ended(200);
    this.#inputTokens += tokens.promptTokens;
    this.#outputTokens += tokens.outputTokens;
  }

  /** Counts the end of a request without an answer of the model. */
  ended(status: number): void {
    this.#inFlight--;
    count(this.#byStatus, status);
  }

  /** Counts a request whose connection ended before its answer. */
  cutOff(): void {
    this.#inFlight--;
    this.#aborted++;
  }

  /** The counters in the form of `/simulator/stats`. */
  toWire(): Record<string, unknown> {
    return {
      requests: this.#requests,
      in_flight: this.#inFlight,
      max_in_flight: this.#maxInFlight,
      aborted: this.#aborted,
      repeated: this.#repeated,
      connections: this.#connections,
      input_tokens: this.#inputTokens,
      output_tokens: this.#outputTokens,
      first_request_at_ms: this.#firstAtMs,
      last_request_at_ms: this.#lastAtMs,
      by_status: Object.fromEntries(this.#byStatus),
      by_endpoint: Object.fromEntries(this.#byEndpoint),
      by_model: Object.fromEntries(this.#byModel),
    };
  }

  #remember(requestId: string): number {
    const tries = (this.#tries.get(requestId) ?? 0) + 1;
    if (tries > 1) this.#repeated++;
    this.#tries.set(requestId, tries);
    if (this.#tries.size > MAX_REMEMBERED) {
      for (const oldest of this.#tries.keys()) {
        this.#tries.delete(oldest);
        break;
      }
    }
    return tries;
  }
}

/** Names come from clients, so only a thousand are counted separately; the rest share one entry. */
function count<K extends string | number>(counters: Map<K | string, number>, key: K): void {
  const known = counters.has(key) || counters.size < 1_000 ? key : 'other';
  counters.set(known, (counters.get(known) ?? 0) + 1);
}
