import type { Context } from '@opentelemetry/api';
import { trace } from '@opentelemetry/api';
import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace-node';

/** The first span of this process in a trace, with the ended spans below it. */
interface Held {
  readonly first: object;
  readonly spans: ReadableSpan[];
  dropped: number;
  state: 'open' | 'ended' | 'discarded';
}

/** Spans held below one first span, 1 to 2 KiB each. Further ones are counted and dropped. */
const MAX_HELD = 200;

/**
 * Exports the spans of an attempt only when the attempt has ended, its first span before those below it. So
 * no exported span lacks its parent if the process is killed: either the first span was exported, or
 * nothing was (docs/design/tracing.md#no-orphans).
 */
export class HeldSpans implements SpanProcessor {
  readonly #next: SpanProcessor;
  readonly #held = new WeakMap<object, Held>();

  constructor(next: SpanProcessor) {
    this.#next = next;
  }

  onStart(span: Span, parentContext: Context): void {
    const parent = trace.getSpan(parentContext);
    const above = parent === undefined ? undefined : this.#held.get(parent);
    this.#held.set(span, above ?? { first: span, spans: [], dropped: 0, state: 'open' });
  }

  onEnd(span: ReadableSpan): void {
    const held = this.#held.get(span);
    if (held === undefined || held.state === 'discarded') return;
    if (held.first === span) this.#release(held, span);
    else if (held.state === 'ended') this.#next.onEnd(span);
    else if (held.spans.length < MAX_HELD) held.spans.push(span);
    else held.dropped++;
  }

  /** Spans below the first span `span` that were dropped because there were too many; 0 for any other. */
  droppedBelow(span: object): number {
    const held = this.#held.get(span);
    return held?.first === span ? held.dropped : 0;
  }

  /** Forgets the spans that belong to the first span `span`, which need not end. */
  discard(span: object): void {
    const held = this.#held.get(span);
    if (held?.first !== span) return;
    held.state = 'discarded';
    held.spans.length = 0;
  }

  forceFlush(): Promise<void> {
    return this.#next.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#next.shutdown();
  }

  #release(held: Held, first: ReadableSpan): void {
    held.state = 'ended';
    this.#next.onEnd(first);
    for (const span of held.spans.splice(0)) this.#next.onEnd(span);
  }
}
