import { createDependencyGauge, type DependencyGauge } from './dependency-watch';
import { Counter, Gauge, Histogram, type Registry } from './metrics';

/** The API's metrics. `path` is the pattern of the route, never the requested path: labels stay few. */
export interface ApiMetrics {
  readonly requests: Counter<'method' | 'path' | 'status'>;
  readonly requestDuration: Histogram<'method' | 'path' | 'status'>;
  readonly requestsInFlight: Gauge<'method' | 'path'>;
  readonly cancellations: Counter<'phase'>;
  readonly fileStorageOperations: Counter<'operation' | 'component' | 'status'>;
  readonly dependencyUp: DependencyGauge;
}

/**
 * Registers the API's metrics. Dashboards depend on their names
 * (docs/design/configuration.md#metric-names).
 */
export function createApiMetrics(registry: Registry): ApiMetrics {
  const registers = [registry];
  return {
    requests: new Counter({
      name: 'http_requests_total',
      help: 'HTTP requests answered',
      labelNames: ['method', 'path', 'status'],
      registers,
    }),
    requestDuration: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the request to the end of the response',
      labelNames: ['method', 'path', 'status'],
      registers,
    }),
    requestsInFlight: new Gauge({
      name: 'http_requests_in_flight',
      help: 'HTTP requests being answered',
      labelNames: ['method', 'path'],
      registers,
    }),
    cancellations: new Counter({
      name: 'batch_cancellation_total',
      help: 'Requested cancellations, by the phase the batch was in (queued, in_progress, finalizing)',
      labelNames: ['phase'],
      registers,
    }),
    fileStorageOperations: new Counter({
      name: 'file_storage_operations_total',
      help: 'Object store operations (store, retrieve, delete) by outcome (success, retry, exhausted)',
      labelNames: ['operation', 'component', 'status'],
      registers,
    }),
    dependencyUp: createDependencyGauge(registers),
  };
}
