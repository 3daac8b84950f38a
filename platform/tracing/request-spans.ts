import type { Attributes, Span, SpanOptions } from '@opentelemetry/api';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { traceHeaders } from './sdk-span';
import type { RequestEnd, RequestSpan, RequestSpans } from './tracing';

/** How the requests of one chunk attempt are recorded. */
export interface RequestSpansOptions {
  /** Begins a span below the chunk attempt. */
  begin(name: string, options: SpanOptions): Span;
  /** Attributes of every span. */
  readonly attributes: Attributes;
  /** Share of lines whose requests are all recorded, 0 to 1. */
  readonly ratio: number;
  /** A request that takes longer is recorded in any case. */
  readonly slowMs: number;
}

type Line = Parameters<RequestSpans['begin']>[0];

const NAME = 'http-request';
/** Bounds of an attempt, so that a chunk of thousands of lines cannot fill a collector. */
const MAX_SAMPLED = 100;
const MAX_ODD = 50;

/**
 * Spans of requests to model servers. The byte offset decides whether a line is sampled, so that all its
 * tries are, by whichever worker. Failed and slow requests of other lines are recorded when they have ended
 * (docs/design/tracing.md#sampled-requests).
 */
export function createRequestSpans(options: RequestSpansOptions): RequestSpans {
  const left = { sampled: MAX_SAMPLED, odd: MAX_ODD };
  return {
    begin: (line) => {
      if (!isSampledLine(line.offset, options.ratio) || left.sampled === 0) {
        return new UnsampledRequest(line, options, left);
      }
      left.sampled--;
      return new SampledRequest(begin(line, options));
    },
  };
}

/** Whether the line at `offset` is sampled; the bits are mixed, because offsets of equal lines are regular. */
function isSampledLine(offset: number, ratio: number): boolean {
  let bits = (offset ^ Math.floor(offset / 2 ** 32)) | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32 < ratio;
}

class SampledRequest implements RequestSpan {
  readonly headers;
  readonly #span: Span;

  constructor(span: Span) {
    this.#span = span;
    this.headers = traceHeaders(span);
  }

  end(end: RequestEnd): void {
    endSpan(this.#span, end);
  }
}

/** Becomes a span only if the request fails or is slow. Its model server cannot take part in the trace. */
class UnsampledRequest implements RequestSpan {
  readonly headers = null;
  readonly #line: Line;
  readonly #options: RequestSpansOptions;
  readonly #left: { odd: number };
  readonly #startedMs = Date.now();

  constructor(line: Line, options: RequestSpansOptions, left: { odd: number }) {
    this.#line = line;
    this.#options = options;
    this.#left = left;
  }

  end(end: RequestEnd): void {
    const isSlow = Date.now() - this.#startedMs > this.#options.slowMs;
    if (this.#left.odd === 0 || !(isSlow || isFailed(end))) return;
    this.#left.odd--;
    endSpan(begin(this.#line, this.#options, this.#startedMs), end);
  }
}

function begin(
  { id, tries }: Line,
  { begin: beginSpan, attributes }: RequestSpansOptions,
  startTime = Date.now(),
): Span {
  return beginSpan(NAME, {
    kind: SpanKind.CLIENT,
    startTime,
    attributes: { ...attributes, 'batch.line.id': id, 'http.request.resend_count': tries },
  });
}

function endSpan(span: Span, end: RequestEnd): void {
  const { status, failure, outcome, retryAtMs } = end;
  span.setAttribute('nightshift.outcome', outcome);
  if (status !== null) span.setAttribute('http.response.status_code', status);
  if (isFailed(end)) {
    span.setAttribute('error.type', failure ?? String(status));
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  if (retryAtMs !== null) {
    span.addEvent('retry', { 'retry.pause_ms': Math.max(0, Math.round(retryAtMs - Date.now())) });
  }
  span.end();
}

function isFailed({ status }: RequestEnd): boolean {
  return status === null || status >= 400;
}
