import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Series of the HTTP requests that a server of ours answers (docs/metrics.md#api). */
export function createHttpSeries(registers: Registry[]) {
  return {
    requests: new Counter({
      name: 'http_requests_total',
      help: 'HTTP requests answered',
      labelNames: ['method', 'path', 'status'] as const,
      registers,
    }),
    requestDuration: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the request to the end of the response',
      labelNames: ['method', 'path', 'status'] as const,
      registers,
    }),
    requestsInFlight: new Gauge({
      name: 'http_requests_in_flight',
      help: 'HTTP requests being answered',
      labelNames: ['method', 'path'] as const,
      registers,
    }),
    connectionsClosed: new Counter({
      name: 'http_connections_closed_total',
      help: 'Connections that were refused or ended because of a limit or of invalid bytes',
      labelNames: ['reason'] as const,
      registers,
    }),
  };
}
