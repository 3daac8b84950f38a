import { AsyncLocalStorage } from 'node:async_hooks';
import { hostname } from 'node:os';
import type { Context, Span, SpanContext, SpanOptions, Tracer } from '@opentelemetry/api';
import { diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, trace, TraceFlags } from '@opentelemetry/api';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import type { IdGenerator } from '@opentelemetry/sdk-trace-node';
import {
  BatchSpanProcessor,
  NodeTracerProvider,
  ParentBasedSampler,
  RandomIdGenerator,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node';
import { redactUrl } from '../config-redact';
import type { Config } from '../config-schema';
import { version } from '../version';
import { within } from '../within';
import type { BatchIds } from './batch-ids';
import { batchIds, remoteContext } from './batch-ids';
import { logExports } from './export-log';
import { HeldSpans } from './held-spans';
import { createOtlpExporter } from './otlp-exporter';
import { createRequestSpans } from './request-spans';
import { givenAttributes, recordError, SdkSpan } from './sdk-span';
import type { SpanAttributes, TracedBatch, TracedProcess, Tracing } from './tracing';

/** Settings of tracing, with an endpoint. */
type Settings = Config['tracing'] & { readonly endpoint: string };

/** A killed process loses the spans of this time. */
const EXPORT_EVERY_MS = 1_000;
const CLOSE_MS = 3_000;
const WARN_EVERY_MS = 5 * 60_000;
/** Attributes hold ids and counts; this bounds what an error message may add. */
const MAX_ATTRIBUTE_CHARS = 1_024;

/** {@link Tracing} over OpenTelemetry's SDK. @throws TypeError if the endpoint is not a URL */
export function createSdkTracing(
  settings: Settings,
  { service, logger, exportEveryMs = EXPORT_EVERY_MS }: TracedProcess,
): Tracing {
  const { endpoint, protocol, sample_ratio: ratio } = settings;
  const shown = redactUrl(endpoint);
  const exporter = logExports(createOtlpExporter(endpoint, protocol), { logger, endpoint: shown });
  logSdkWarnings(logger);
  const held = new HeldSpans(
    new BatchSpanProcessor(exporter, { scheduledDelayMillis: exportEveryMs }),
  );
  const ids = new PresetIds();
  const sampler = new TraceIdRatioBasedSampler(ratio);
  const provider = new NodeTracerProvider({
    resource: resourceOf(service),
    sampler: new ParentBasedSampler({ root: sampler }),
    idGenerator: ids,
    spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_CHARS },
    spanProcessors: [held],
  });
  logger.info({ endpoint: shown, protocol }, 'tracing');
  return new SdkTracing({ settings, provider, held, ids, sampler });
}

function resourceOf(service: string) {
  const own = resourceFromAttributes({
    'service.name': service,
    'service.version': version(),
    'service.instance.id': `${process.pid}@${hostname()}`,
  });
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
  return own.merge(detectResources({ detectors: [envDetector] }));
}

/** The SDK warns about spans for which its queue has no room. Logged once in 5 minutes at most. */
function logSdkWarnings(logger: TracedProcess['logger']): void {
  const ignore = (): void => undefined;
  let loggedAtMs = -Infinity;
  diag.setLogger(
    {
      ...{ error: ignore, info: ignore, debug: ignore, verbose: ignore },
      warn: (message) => {
        if (performance.now() - loggedAtMs < WARN_EVERY_MS) return;
        loggedAtMs = performance.now();
        logger.warn(`tracing: ${message}`);
      },
    },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** Random ids, except that the next span may be given its ids. */
class PresetIds implements IdGenerator {
  next: Pick<SpanContext, 'traceId' | 'spanId'> | null = null;
  readonly #random = new RandomIdGenerator();

  generateTraceId(): string {
    return this.next?.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.next?.spanId ?? this.#random.generateSpanId();
  }
}

interface Parts {
  readonly settings: Settings;
  readonly provider: NodeTracerProvider;
  readonly held: HeldSpans;
  readonly ids: PresetIds;
  readonly sampler: TraceIdRatioBasedSampler;
}

class SdkTracing implements Tracing {
  readonly #parts: Parts;
  readonly #tracer: Tracer;
  /** The active span. It is not OpenTelemetry's global one, so that two tracings in a process do not mix. */
  readonly #active = new AsyncLocalStorage<Span>();
  #closed: Promise<void> | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#tracer = parts.provider.getTracer('nightshift', version());
  }

  beginRequest(name: string, headers: Readonly<Record<string, unknown>>): SdkSpan {
    const parent = below(remoteContext(headers));
    return this.#open(this.#tracer.startSpan(name, { kind: SpanKind.SERVER }, parent));
  }

  beginTrace(name: string, attributes: SpanAttributes): SdkSpan {
    const options = { attributes: givenAttributes(attributes) };
    return this.#open(this.#tracer.startSpan(name, options, ROOT_CONTEXT));
  }

  beginStep(name: string, batch: TracedBatch, attributes: SpanAttributes): SdkSpan | null {
    const ids = this.#idsOf(batch);
    if (!isSampled(ids.batch)) return null;
    const own = { 'batch.id': batch.id, 'tenant.id': batch.tenant, ...attributes };
    const options = { kind: SpanKind.CONSUMER, attributes: givenAttributes(own) };
    return this.#open(this.#tracer.startSpan(name, options, below(ids.batch)));
  }

  beginChild(name: string, attributes: SpanAttributes): SdkSpan | null {
    const active = this.#active.getStore();
    if (active?.isRecording() !== true) return null;
    const options = { kind: SpanKind.CLIENT, attributes: givenAttributes(attributes) };
    return this.#open(this.#tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, active)));
  }

  requests(attributes: SpanAttributes) {
    const active = this.#active.getStore();
    if (active?.isRecording() !== true) return null;
    const { request_ratio: ratio, slow_request: slowMs } = this.#parts.settings;
    const parent = trace.setSpan(ROOT_CONTEXT, active);
    return createRequestSpans({
      begin: (name, options) => this.#tracer.startSpan(name, options, parent),
      attributes: givenAttributes(attributes),
      ...{ ratio, slowMs },
    });
  }

  recordBatch(
    batch: TracedBatch,
    { attributes, error }: { attributes: SpanAttributes; error?: unknown },
  ): void {
    const { provider } = this.#parts;
    const ids = this.#idsOf(batch);
    if (!isSampled(ids.batch)) return;
    const own = {
      'batch.id': batch.id,
      'tenant.id': batch.tenant,
      'file.id': batch.inputFileId,
      'batch.endpoint': batch.endpoint,
    };
    const startTime = batch.traceContext?.startedAtMs ?? batch.createdAtSec * 1000;
    const options = { startTime, attributes: givenAttributes({ ...own, ...attributes }) };
    const span = this.#startWithId(options, ids);
    if (error !== undefined) recordError(span, error);
    span.end();
    // The other spans of the batch hang on this one, so it is exported without delay.
    provider.forceFlush().catch(() => undefined);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const flushed = this.#parts.provider.shutdown().catch(() => undefined);
    await within(CLOSE_MS, flushed, () => undefined);
  }

  #startWithId(options: SpanOptions, { batch, parent }: BatchIds): Span {
    const { ids } = this.#parts;
    ids.next = batch;
    try {
      return this.#tracer.startSpan('process-batch', options, below(parent));
    } finally {
      ids.next = null;
    }
  }

  #idsOf(batch: TracedBatch): BatchIds {
    const { sampler } = this.#parts;
    return batchIds(
      batch,
      (traceId) =>
        sampler.shouldSample(ROOT_CONTEXT, traceId).decision ===
        SamplingDecision.RECORD_AND_SAMPLED,
    );
  }

  #open(span: Span): SdkSpan {
    return new SdkSpan(span, { held: this.#parts.held, active: this.#active });
  }
}

function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

function below(parent: SpanContext | null): Context {
  return parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
}
