import type { FastifyRequest } from 'fastify';
import { type RawHeaders, withoutField } from '../../inference/proxy/forwarded-headers';
import { TRACE_HEADERS } from './request-trace';

/** A request that a backend answers. */
interface Answered {
  readonly request: FastifyRequest;
  /** How long it waited in the queue, ms. */
  readonly waitedMs: number;
}

const NONE: readonly string[] = [];
const NOT_QUEUED = 'queue;dur=0';
/** Clients name their tenant by authenticating; only workers may name another one. */
const OF_WORKERS: readonly string[] = ['x-gateway-inference-fairness-id'];
const OF_WORKERS_AND_TRACES: readonly string[] = [...OF_WORKERS, ...TRACE_HEADERS];

/** Names of the fields of a client that its backend does not get. */
export function withheldFields({ isWorker }: FastifyRequest, isTraced: boolean): readonly string[] {
  if (isTraced) return isWorker ? TRACE_HEADERS : OF_WORKERS_AND_TRACES;
  return isWorker ? NONE : OF_WORKERS;
}

/** The fields of an answer for the client, with the id of the request and its time in the queue. */
export function returnedFields(headers: string[], { request, waitedMs }: Answered): RawHeaders {
  const timing = waitedMs === 0 ? NOT_QUEUED : `queue;dur=${Math.round(waitedMs)}`;
  const kept = withoutField(headers, 'x-request-id');
  kept.push('x-request-id', request.id, 'server-timing', timing);
  return kept;
}

/**
 * The target of a request as path and query. A client may name scheme and host in it (RFC 9112, section 3.2.2); a
 * backend that is a proxy itself would send such a request to that host.
 */
export function originForm(target: string): string {
  return target.startsWith('/') ? target : target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, '');
}
