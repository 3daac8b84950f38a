/** An answer that has been decided but not yet generated, and what it costs to generate. */
export interface Generation {
  readonly promptTokens: number;
  /** The prompt as the prefix cache sees it; see `promptText`. Costs time, so only the engine asks. */
  promptText(): string;
  /** Cached prompt tokens that are reported if no engine counts them. */
  readonly estimatedCachedTokens: number;
  readonly outputTokens: number;
  readonly finish: FinishReason;
  /** The whole answer. @param cachedTokens prompt tokens that came from the prefix cache */
  body(cachedTokens: number): Record<string, unknown>;
  /** How to send the answer token by token; `null` if the endpoint cannot. */
  readonly stream: (() => StreamedAnswer) | null;
}

/** Why an answer ends: the model was done, or the limit of the request was reached. */
export type FinishReason = 'stop' | 'length';

/** The parts of an answer that is sent as server-sent events. */
export interface StreamedAnswer {
  /** Members that every event has. */
  readonly head: Record<string, unknown>;
  /** The choices, generated one after the other. */
  readonly outputs: readonly Output[];
  /** The choice of an event. @param index which output; `text` is empty in its last event */
  choice(index: number, text: string, finish: FinishReason | null): unknown;
  /** Sent before the first text of an output, if the endpoint has that. */
  readonly opening: ((index: number) => unknown) | null;
  usage(cachedTokens: number): unknown;
}

/** One generated text. It is determined by the seed. */
export interface Output {
  readonly seed: number;
  readonly tokens: number;
  readonly finish: FinishReason;
}
