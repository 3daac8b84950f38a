import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { FinishReason, Generation } from './answers/generation';
import type { EngineSnapshot } from './engine/engine';

/** vLLM's buckets of the time to the first token, seconds. */
const FIRST_TOKEN_BUCKETS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
  160, 640, 2560,
];
/** vLLM's buckets of the time of a whole request, seconds. */
const REQUEST_BUCKETS = [
  0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
];

/**
 * What `/metrics` shows: a part of vLLM's metrics, under vLLM's names
 * (docs/design/simulator.md#metrics). Its own registry: tests run several simulators in one process.
 */
export class ModelMetrics {
  readonly #registry = new Registry();
  readonly #firstToken: Histogram;
  readonly #requestSeconds: Histogram;
  readonly #finished: Record<FinishReason, number> = { stop: 0, length: 0 };
  #promptTokens = 0;
  #outputTokens = 0;

  constructor(snapshot: () => EngineSnapshot) {
    this.#firstToken = this.#histogram(
      'vllm:time_to_first_token_seconds',
      'Time to the first token.',
      FIRST_TOKEN_BUCKETS,
    );
    this.#requestSeconds = this.#histogram(
      'vllm:e2e_request_latency_seconds',
      'Time from the request to the end of the answer.',
      REQUEST_BUCKETS,
    );
    this.#addGauges(snapshot);
    this.#addCounters(snapshot);
  }

  /** Counts the first token of a request, `seconds` after the request. */
  firstToken(seconds: number): void {
    this.#firstToken.observe(seconds);
  }

  /** Counts the end of an answer, `seconds` after the request. */
  answered({ promptTokens, outputTokens, finish }: Generation, seconds: number): void {
    this.#promptTokens += promptTokens;
    this.#outputTokens += outputTokens;
    this.#finished[finish]++;
    this.#requestSeconds.observe(seconds);
  }

  /** The metrics in Prometheus' text format, with vLLM's labels. */
  async text(modelName: string): Promise<string> {
    this.#registry.setDefaultLabels({ model_name: modelName, engine: '0' });
    return this.#registry.metrics();
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name, help, buckets, registers: [this.#registry] });
  }

  #addGauges(snapshot: () => EngineSnapshot): void {
    const gauges: [name: string, help: string, value: (now: EngineSnapshot) => number][] = [
      ['vllm:num_requests_running', 'Requests that run.', ({ running }) => running],
      ['vllm:num_requests_waiting', 'Requests that wait for a slot.', ({ waiting }) => waiting],
      [
        'vllm:kv_cache_usage_perc',
        'Share of the KV cache in use, 0 to 1.',
        ({ kvUsage }) => kvUsage,
      ],
    ];
    for (const [name, help, value] of gauges) {
      const gauge: Gauge = new Gauge({
        name,
        help,
        registers: [this.#registry],
        collect: () => gauge.set(value(snapshot())),
      });
    }
  }

  /** They are kept as plain numbers, because every request adds to them. */
  #addCounters(snapshot: () => EngineSnapshot): void {
    this.#counter('vllm:prompt_tokens_total', 'Prompt tokens.', () => this.#promptTokens);
    this.#counter('vllm:generation_tokens_total', 'Generated tokens.', () => this.#outputTokens);
    this.#counter(
      'vllm:prefix_cache_queries_total',
      'Prompt tokens that were looked up in the prefix cache.',
      () => snapshot().queriedTokens,
    );
    this.#counter(
      'vllm:prefix_cache_hits_total',
      'Prompt tokens that were found in the prefix cache.',
      () => snapshot().hitTokens,
    );
    const finished = new Counter({
      name: 'vllm:request_success_total',
      help: 'Answers.',
      labelNames: ['finished_reason'],
      registers: [this.#registry],
      collect: () => {
        finished.reset();
        for (const [reason, count] of Object.entries(this.#finished)) {
          finished.inc({ finished_reason: reason }, count);
        }
      },
    });
  }

  #counter(name: string, help: string, value: () => number): void {
    const counter: Counter = new Counter({
      name,
      help,
      registers: [this.#registry],
      collect: () => {
        counter.reset();
        counter.inc(value());
      },
    });
  }
}
