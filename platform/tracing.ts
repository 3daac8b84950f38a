import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import type { Resource } from '@opentelemetry/resources';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { SpanProcessor } from '@opentelemetry/sdk-trace-node';
import {
  BatchSpanProcessor,
  NodeTracerProvider,
  NoopSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { version } from './version';

/** Tracing of one process; does nothing without an OTLP endpoint. */
export interface Tracing {
  readonly resource: Resource;
  readonly spanProcessor: SpanProcessor;
  /** Sends the remaining spans. */
  close(): Promise<void>;
}

/**
 * Starts tracing if there is an `endpoint` (`OTEL_EXPORTER_OTLP_ENDPOINT`). The Temporal interceptors are
 * always installed, so that the replay of a history does not depend on tracing.
 */
export function startTracing(serviceName: string, endpoint: string | undefined): Tracing {
  const resource = resourceFromAttributes({
    'service.name': serviceName,
    'service.version': version(),
  });
  if (endpoint === undefined) {
    return { resource, spanProcessor: new NoopSpanProcessor(), close: () => Promise.resolve() };
  }
  diag.setLogger(silent, DiagLogLevel.NONE);
  const spanProcessor = new BatchSpanProcessor(new OTLPTraceExporter({ url: endpoint }));
  const provider = new NodeTracerProvider({ resource, spanProcessors: [spanProcessor] });
  provider.register();
  return { resource, spanProcessor, close: () => provider.shutdown() };
}

const nothing = (): void => undefined;
const silent = { error: nothing, warn: nothing, info: nothing, debug: nothing, verbose: nothing };
