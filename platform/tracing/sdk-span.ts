import type { AsyncLocalStorage } from 'node:async_hooks';
import type { Attributes, Span } from '@opentelemetry/api';
import { defaultTextMapSetter, ROOT_CONTEXT, SpanStatusCode, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { isNightshiftError } from '../../core/errors';
import type { HeldSpans } from './held-spans';
import type { OpenSpan, SpanAttributes, TraceHeaders } from './tracing';

const propagator = new W3CTraceContextPropagator();

/** What a span needs of its tracing. */
interface SpanPlace {
  readonly held: HeldSpans;
  readonly active: AsyncLocalStorage<Span>;
}

/** {@link OpenSpan} over a span of OpenTelemetry's SDK. */
export class SdkSpan implements OpenSpan {
  readonly #span: Span;
  readonly #place: SpanPlace;

  constructor(span: Span, place: SpanPlace) {
    this.#span = span;
    this.#place = place;
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(givenAttributes(attributes));
  }

  fail(error: unknown): void {
    recordError(this.#span, error);
  }

  run<T>(work: () => T): T {
    return this.#place.active.run(this.#span, work);
  }

  headers(): TraceHeaders {
    return traceHeaders(this.#span);
  }

  end(): void {
    const dropped = this.#place.held.droppedBelow(this.#span);
    if (dropped > 0) this.#span.setAttribute('nightshift.dropped_spans', dropped);
    this.#span.end();
  }

  discard(): void {
    this.#place.held.discard(this.#span);
  }
}

/** The W3C headers that name `span` as the parent. */
export function traceHeaders(span: Span): TraceHeaders {
  const headers: Record<string, string> = {};
  propagator.inject(trace.setSpan(ROOT_CONTEXT, span), headers, defaultTextMapSetter);
  return headers;
}

/** Records an exception event with the code of our errors as its type, and the status `error`. */
export function recordError(span: Span, error: unknown): void {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const type = isNightshiftError(error) ? error.code : name;
  span.recordException({ name: type, message, ...(stack === undefined ? {} : { stack }) });
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** The attributes that have a value. */
export function givenAttributes(attributes: SpanAttributes): Attributes {
  const given = Object.entries(attributes).filter(([, value]) => value != null);
  return Object.fromEntries(given) as Attributes;
}
