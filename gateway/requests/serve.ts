import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FaultCode } from '../../core/dispatch/drop-codes';
import type { QueuedRequest } from '../../core/dispatch/queue/queued-request';
import { retryAfterMs } from '../../core/dispatch/retry-after';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import { fieldOf } from '../../inference/proxy/forwarded-headers';
import { passThrough } from '../../inference/proxy/pass-through';
import type { GatewayPool } from '../pools/gateway-pool';
import type { PoolBackend } from '../pools/pool-backend';
import type { Assignment } from './admission';
import { originForm, returnedFields, withheldFields } from './exchange-fields';
import type { RequestHead } from './request-head';
import { endExchangeSpan, type GatewayTracing, traceExchange, traceFields } from './request-trace';
import { workOf } from './used-tokens';

/** A dispatched request, and everything that its exchange needs. */
export interface Dispatched {
  readonly pool: GatewayPool;
  readonly queued: QueuedRequest;
  readonly body: Buffer;
  readonly head: RequestHead;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Whether a backend without a key gets the client's `authorization`. */
  readonly keepsAuthorization: boolean;
  readonly tracing: GatewayTracing | null;
  /** How long it waited in the queue, ms. */
  readonly waitedMs: number;
  readonly signal: AbortSignal | null;
  /** Another backend for a request that the ones in `tried` did not serve. */
  assign(tried: ReadonlySet<string>): Assignment | null;
  onFirstByte(backend: PoolBackend, ttfbMs: number): void;
}

/** How a dispatched request ended; `fault` is null if the client has an answer or is gone. */
export interface Served {
  readonly end: ExchangeEnd | null;
  readonly fault: FaultCode | null;
  /** The last backend that it was sent to; null if there was none. */
  readonly backend: string | null;
}

/** Ends that cut an answer which has begun, and are not the client's doing. */
const CUTS: readonly ExchangeEnd['outcome'][] = ['lost', 'timeout', 'aborted'];

/** Whether the client has only a part of the answer, and did not cause that. */
export function isCut({ end }: Served): boolean {
  return end !== null && end.isHeadSent && CUTS.includes(end.outcome);
}

/** Whether the answer is a 2xx that was not cut. */
export function isSuccess(served: Served): boolean {
  const status = served.end?.status ?? 0;
  return status >= 200 && status < 300 && !isCut(served);
}

/** Statuses with which a backend refuses a request that another one may take. */
const REFUSED = [429, 503];

/**
 * Sends a request to its backend and passes the answer on. If nothing was sent, or the backend refuses with 429 or
 * 503, the other backends are tried, each once; the last refusal is passed on.
 */
export async function serve(dispatched: Dispatched, first: Assignment | null): Promise<Served> {
  const tried = new Set<string>();
  let assignment = first;
  let last: ExchangeEnd | null = null;
  let backend: string | null = null;
  while (assignment !== null) {
    backend = assignment.backend.id;
    tried.add(backend);
    const { end, next } = await exchange(dispatched, assignment, tried);
    last = end;
    if (end.isHeadSent || !['unreachable', 'declined'].includes(end.outcome)) break;
    assignment = next ?? dispatched.assign(tried);
  }
  return { end: last, fault: last === null ? 'no_backends' : faultOf(last), backend };
}

interface Exchanged {
  readonly end: ExchangeEnd;
  /** The backend for which the answer of this one was declined. */
  readonly next: Assignment | null;
}

async function exchange(
  dispatched: Dispatched,
  { backend, sending }: Assignment,
  tried: ReadonlySet<string>,
): Promise<Exchanged> {
  const { pool, request, reply, head } = dispatched;
  let end = UNKNOWN;
  let next: Assignment | null = null;
  let pauseMs = 0;
  const span = traceExchange(dispatched.tracing, request, backend.id);
  try {
    if (tried.size === 1) announceDispatch(dispatched);
    end = await passThrough({
      backend: backend.proxied,
      method: request.method,
      path: originForm(request.raw.url ?? '/'),
      headers: request.raw.rawHeaders,
      ownHeaders: ['x-request-id', request.id, ...traceFields(span)],
      withheld: withheldFields(request, span !== null),
      keepsAuthorization: dispatched.keepsAuthorization,
      body: dispatched.body,
      response: reply.raw,
      requestTimeoutMs: pool.limits.requestTimeoutMs,
      stallTimeoutMs: pool.limits.stallTimeoutMs,
      signal: dispatched.signal,
      onFirstByte: (ttfbMs) => dispatched.onFirstByte(backend, ttfbMs),
      onHead: (status, headers) => {
        if (REFUSED.includes(status)) {
          pauseMs = retryAfterMs(fieldOf(headers, 'retry-after'), Date.now()) ?? 0;
          next = dispatched.assign(tried);
          if (next !== null) return null;
        }
        dispatched.queued.hasAnswerBegun = true;
        if (status < 300) pool.onAnswerBegun(backend, head.prompt);
        reply.hijack();
        return returnedFields(headers, dispatched);
      },
    });
  } finally {
    endExchangeSpan(span, end);
    backend.end(sending, { end, work: workOf(end, head), pauseMs });
    pool.refresh();
  }
  return { end, next };
}

/** The end of an exchange that failed unexpectedly. It shows nothing about the backend. */
const UNKNOWN: ExchangeEnd = {
  outcome: 'aborted',
  status: null,
  isHeadSent: false,
  isRefused: false,
  bytes: 0,
  ttfbMs: null,
  usage: null,
  events: 0,
  message: 'an unexpected error',
};

/** Tells a worker that its line left the queue. */
function announceDispatch({ request, reply }: Dispatched): void {
  if (request.isWorker && request.raw.httpVersionMinor > 0) reply.raw.writeProcessing();
}

/** What is still to be answered after an exchange. */
function faultOf({ outcome, isHeadSent }: ExchangeEnd): FaultCode | null {
  if (isHeadSent) return null;
  switch (outcome) {
    case 'answered':
      return null;
    case 'client_closed':
      return 'client_closed';
    case 'declined':
    case 'unreachable':
      return 'backend_unreachable';
    case 'lost':
      return 'backend_lost';
    case 'timeout':
      return 'backend_timeout';
    case 'aborted':
      return 'evicted';
  }
}
