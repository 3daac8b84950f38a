import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FaultCode } from '../../core/dispatch/drop-codes';
import type { QueuedRequest } from '../../core/dispatch/queue/queued-request';
import { retryAfterMs } from '../../core/dispatch/retry-after';
import type { PromptBytes } from '../../core/openai/prompt-bytes';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import { fieldOf } from '../../inference/proxy/forwarded-headers';
import { passThrough } from '../../inference/proxy/pass-through';
import type { GatewayPool } from '../pools/gateway-pool';
import type { PoolBackend } from '../pools/pool-backend';
import type { Assignment } from './admission';
import {
  endExchangeSpan,
  type GatewayTracing,
  TRACE_HEADERS,
  traceExchange,
  traceFields,
} from './request-trace';

/** A dispatched request, and everything that its exchange needs. */
export interface Dispatched {
  readonly pool: GatewayPool;
  readonly queued: QueuedRequest;
  readonly body: Buffer;
  /** Where the prompt is in the body. */
  readonly prompt: PromptBytes;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Whether a backend without a key gets the client's `authorization`. */
  readonly keepsAuthorization: boolean;
  readonly tracing: GatewayTracing | null;
  /** How long it waited in the queue, ms. */
  readonly waitedMs: number;
  readonly signal: AbortSignal | null;
  /** Another backend for a request that the ones in `tried` did not serve. */
  readonly assign: (tried: ReadonlySet<string>) => Assignment | null;
  readonly onFirstByte: (backend: PoolBackend, ttfbMs: number) => void;
  /** Tokens that an exchange is known to have used. */
  readonly tokensOf: (end: ExchangeEnd) => number;
}

/** How a dispatched request ended; `fault` is null if the client has an answer or is gone. */
export interface Served {
  readonly end: ExchangeEnd | null;
  readonly fault: FaultCode | null;
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
  while (assignment !== null) {
    tried.add(assignment.backend.id);
    const { end, next } = await exchange(dispatched, assignment, tried);
    last = end;
    if (end.isHeadSent || !['unreachable', 'declined'].includes(end.outcome)) break;
    assignment = next ?? dispatched.assign(tried);
  }
  return { end: last, fault: last === null ? 'no_backends' : faultOf(last) };
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
  const { pool, request, reply, signal } = dispatched;
  let next: Assignment | null = null;
  let pauseMs = 0;
  const span = traceExchange(dispatched.tracing, request, backend.id);
  const end = await passThrough({
    backend: backend.proxied,
    method: request.method,
    path: request.raw.url ?? '/',
    headers: sentHeaders(request, span !== null),
    ownHeaders: ['x-request-id', request.id, ...traceFields(span)],
    keepsAuthorization: dispatched.keepsAuthorization,
    body: dispatched.body,
    response: reply.raw,
    ...pool.limits,
    onFirstByte: (ttfbMs) => dispatched.onFirstByte(backend, ttfbMs),
    onHead: (status, headers) => {
      if (REFUSED.includes(status)) {
        pauseMs = retryAfterMs(fieldOf(headers, 'retry-after'), Date.now()) ?? 0;
        next = dispatched.assign(tried);
        if (next !== null) return null;
      }
      dispatched.queued.hasAnswerBegun = true;
      if (status < 300) pool.onAnswerBegun(backend, dispatched.prompt);
      reply.hijack();
      return returnedHeaders(headers, dispatched);
    },
    ...(signal === null ? {} : { signal }),
  });
  endExchangeSpan(span, end);
  backend.end(sending, { end, tokens: dispatched.tokensOf(end), pauseMs });
  pool.refresh();
  return { end, next };
}

/** Clients name their tenant by authenticating; only workers may name another one. */
const WORKER_HEADERS = ['x-gateway-inference-fairness-id'];

function sentHeaders({ raw, isWorker }: FastifyRequest, isTraced: boolean): readonly string[] {
  const received = isTraced ? withoutHeaders(raw.rawHeaders, TRACE_HEADERS) : raw.rawHeaders;
  return isWorker ? received : withoutHeaders(received, WORKER_HEADERS);
}

function returnedHeaders(headers: readonly string[], { request, waitedMs }: Dispatched): string[] {
  const kept = withoutHeaders(headers, ['x-request-id']);
  return [
    ...kept,
    ...['x-request-id', request.id],
    ...['server-timing', `queue;dur=${Math.round(waitedMs)}`],
  ];
}

function withoutHeaders(headers: readonly string[], names: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (!names.includes(name.toLowerCase())) kept.push(name, headers[i + 1] ?? '');
  }
  return kept.length === headers.length ? headers : kept;
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
