import { createHash } from 'node:crypto';
import type { SpanContext } from '@opentelemetry/api';
import { createTraceState, isSpanContextValid, TraceFlags } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import type { TracedBatch } from './tracing';

/** The places of a batch's spans in a trace. */
export interface BatchIds {
  /** The span `process-batch`, the parent of all others. */
  readonly batch: SpanContext;
  /** The span of the create call; null if it was not traced. */
  readonly parent: SpanContext | null;
}

/**
 * Every worker finds the same ids for a batch, so that spans of several workers make one tree
 * (docs/design/tracing.md#trace-of-a-batch).
 *
 * @param isSampled decides for a batch whose create call was not traced
 */
export function batchIds(
  { id, traceContext }: Pick<TracedBatch, 'id' | 'traceContext'>,
  isSampled: (traceId: string) => boolean,
): BatchIds {
  const parent = traceContext === null ? null : remoteContext(traceContext);
  const traceId = parent?.traceId ?? hex(`trace ${id}`, 16);
  const sampled = isSampled(traceId) ? TraceFlags.SAMPLED : TraceFlags.NONE;
  const { traceState } = parent ?? {};
  const batch = {
    traceId,
    spanId: hex(`process-batch ${id}`, 8),
    traceFlags: parent?.traceFlags ?? sampled,
    isRemote: true,
    ...(traceState === undefined ? {} : { traceState }),
  };
  return { batch, parent };
}

/** The span that W3C headers name; null if they are missing or malformed. */
export function remoteContext(headers: {
  readonly traceparent?: unknown;
  readonly tracestate?: unknown;
}): SpanContext | null {
  const { traceparent, tracestate } = headers;
  const found = typeof traceparent === 'string' ? parseTraceParent(traceparent) : null;
  if (found === null || !isSpanContextValid(found)) return null;
  const context = { ...found, isRemote: true };
  if (typeof tracestate !== 'string' || tracestate === '') return context;
  return { ...context, traceState: createTraceState(tracestate) };
}

function hex(text: string, bytes: number): string {
  return createHash('sha256')
    .update(text)
    .digest('hex')
    .slice(0, 2 * bytes);
}
