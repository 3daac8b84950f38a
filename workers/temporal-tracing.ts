import { emptyResource } from '@opentelemetry/resources';
import { NoopSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry-v2';

/**
 * Temporal's tracing interceptors, without an exporter. They are always installed and always alike, because
 * they are part of every history (docs/decisions/0005-opentelemetry-v2-and-sdk-1-23.md). Their own spans are
 * not exported: those of a workflow are lost with its worker, and would leave orphans
 * (docs/design/tracing.md#no-orphans).
 */
export function temporalTracing(): OpenTelemetryPlugin {
  return new OpenTelemetryPlugin({
    resource: emptyResource(),
    spanProcessor: new NoopSpanProcessor(),
  });
}
