import { OTLPTraceExporter as GrpcExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { OTLPTraceExporter as HttpExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { SpanExporter } from '@opentelemetry/sdk-trace-node';
import type { Config } from '../config-schema';

/** The longest time of one export, with its retries. A collector that hangs costs spans, never work. */
const EXPORT_TIMEOUT_MS = 5_000;

const HTTP_PATH = 'v1/traces';

/**
 * An exporter to an OTLP collector. Headers, certificates and compression are those of OpenTelemetry's
 * variables, such as `OTEL_EXPORTER_OTLP_HEADERS`. @throws TypeError if `endpoint` is not a URL
 */
export function createOtlpExporter(
  endpoint: string,
  protocol: Config['tracing']['protocol'],
): SpanExporter {
  if (protocol === 'grpc') {
    return new GrpcExporter({ url: endpoint, timeoutMillis: EXPORT_TIMEOUT_MS });
  }
  return new HttpExporter({ url: tracesUrl(endpoint), timeoutMillis: EXPORT_TIMEOUT_MS });
}

/** The endpoint names the collector, as in `OTEL_EXPORTER_OTLP_ENDPOINT`; traces have a path below it. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  if (!url.pathname.endsWith(`/${HTTP_PATH}`)) {
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${HTTP_PATH}`;
  }
  return url.toString();
}
