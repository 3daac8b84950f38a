import type { TraceContext } from '../../core/batch/trace-context';
import type { Logger } from '../logger';

/** Attributes of a span. Undefined and null ones are left out. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | null | undefined>
>;

/** Headers that carry a trace to another process: `traceparent`, `tracestate`. Names are lower-case. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** A span that has begun. Exactly one of `end` and `discard` is called. */
export interface OpenSpan {
  set(attributes: SpanAttributes): void;
  /** Records an error, and that the operation failed. */
  fail(error: unknown): void;
  /** Runs `work` while this span is the active one: spans that it begins are below this one. */
  run<T>(work: () => T): T;
  /** Headers for a process that continues the trace below this span. */
  headers(): TraceHeaders;
  end(): void;
  /** Forgets the span and everything below it. Has an effect only on the first span of a process. */
  discard(): void;
}

/** What is known of a batch whose work is traced. */
export interface TracedBatch {
  readonly id: string;
  readonly tenant: string;
  readonly inputFileId: string;
  readonly endpoint: string;
  readonly createdAtSec: number;
  /** Null if the create call was not traced. Then the trace id is made from the batch id. */
  readonly traceContext: TraceContext | null;
}

/** How one request to a model server ended. */
export interface RequestEnd {
  /** Status of the answer; null if there was none. */
  readonly status: number | null;
  /** Why there was no answer; null if there was one. */
  readonly failure: string | null;
  /** `answered`, `retry` or `unanswered`. */
  readonly outcome: string;
  /** When the line is tried again, Unix ms; null if it is not. */
  readonly retryAtMs: number | null;
}

/** One request to a model server. */
export interface RequestSpan {
  /** Headers that continue the trace in the model server; null if the request is not sampled. */
  readonly headers: TraceHeaders | null;
  end(end: RequestEnd): void;
}

/** The requests of one chunk attempt whose batch is traced. */
export interface RequestSpans {
  /** Call right before a request is sent. @param offset byte offset of the line, which decides sampling */
  begin(line: {
    readonly id: string;
    readonly offset: number;
    readonly tries: number;
  }): RequestSpan;
}

/** Records spans and exports them (docs/design/tracing.md). No method blocks or throws. */
export interface Tracing {
  /** Begins the span of an API request; it continues the caller's trace if the headers name one. */
  beginRequest(name: string, headers: Readonly<Record<string, unknown>>): OpenSpan;
  /** Begins a trace of its own. */
  beginTrace(name: string, attributes: SpanAttributes): OpenSpan;
  /** Begins a span below `process-batch`; null if the batch is not sampled. */
  beginStep(name: string, batch: TracedBatch, attributes: SpanAttributes): OpenSpan | null;
  /** Begins a span below the active one; null if there is none. */
  beginChild(name: string, attributes: SpanAttributes): OpenSpan | null;
  /** The requests of a chunk, below the active span; null if there is none. */
  requests(attributes: SpanAttributes): RequestSpans | null;
  /**
   * Records the span `process-batch` of a batch that has ended. It may be recorded twice, always with the
   * same id.
   */
  recordBatch(batch: TracedBatch, end: { attributes: SpanAttributes; error?: unknown }): void;
  /** Exports what is left, for at most 3 s. */
  close(): Promise<void>;
}

/** The process whose spans are recorded. */
export interface TracedProcess {
  /** `service.name` of its spans. */
  readonly service: string;
  readonly logger: Logger;
  /** Longest time that an ended span waits for its export. Default 1 s. */
  readonly exportEveryMs?: number;
}
