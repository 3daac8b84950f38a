import type { FastifyRequest } from 'fastify';

const TRACE_HEADERS = ['traceparent', 'tracestate'];

/** Headers that continue the trace of a request, or of its client, in a worker. */
export function traceOf({ span, raw }: FastifyRequest): Readonly<Record<string, string>> {
  if (span !== null) return span.headers();
  const given = TRACE_HEADERS.map((name) => [name, raw.headers[name]] as const);
  return Object.fromEntries(
    given.filter((one): one is [string, string] => typeof one[1] === 'string'),
  );
}
