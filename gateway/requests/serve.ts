import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServerResponse } from 'node:http';
import type { FaultCode } from '../../core/dispatch/drop-codes';
import type { QueuedRequest } from '../../core/dispatch/queue/queued-request';
import { retryAfterMs } from '../../core/dispatch/retry-after';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import { fieldOf, type RawHeaders } from '../../inference/proxy/forwarded-headers';
import { passThrough } from '../../inference/proxy/pass-through';
import type { PassThroughOptions } from '../../inference/proxy/pass-through-options';
import type { BodySource, ProxiedBackend } from '../../inference/proxy/proxied-backend';
import type { ExchangeOwner } from '../../inference/proxy/stream-exchange';
import type { OpenSpan } from '../../platform/tracing/tracing';
import type { GatewayPool } from '../pools/gateway-pool';
import type { PoolBackend, Sending } from '../pools/pool-backend';
import { originForm, returnedFields, withheldFields } from './exchange-fields';
import type { RequestHead } from './request-head';
import { endExchangeSpan, type GatewayTracing, traceExchange, traceFields } from './request-trace';
import { workOf } from './used-tokens';

/** A request that was sent to a backend, or is about to be. */
export interface Assignment {
  readonly backend: PoolBackend;
  readonly sending: Sending;
}

/** A dispatched request, and everything that its exchange needs. */
export interface Dispatched {
  readonly pool: GatewayPool;
  readonly queued: QueuedRequest;
  readonly body: Buffer | BodySource;
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
  /** The last exchange has ended, or there was no backend. Called once, unless `onFailed` is. */
  onServed(served: Served): void;
  /** Something failed unexpectedly. What was sent is not known. */
  onFailed(error: unknown): void;
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

const NONE: readonly string[] = [];
/** Statuses with which a backend refuses a request that another one may take. */
const REFUSED: readonly number[] = [429, 503];

/**
 * Sends a request to its backend and passes the answer on. If nothing was sent, or the backend refuses with 429 or
 * 503, the other backends are tried, each once; the last refusal is passed on.
 *
 * It is what the exchange with a backend reads the request from, and calls: an object and callbacks of its own for
 * each exchange would cost a short request more than its way through the queue.
 */
export class Serving implements PassThroughOptions, ExchangeOwner {
  readonly method: string;
  readonly path: string;
  readonly headers: RawHeaders;
  readonly body: Buffer | BodySource;
  readonly response: ServerResponse;
  readonly keepsAuthorization: boolean;
  readonly requestTimeoutMs: number;
  readonly stallTimeoutMs: number;
  readonly signal: AbortSignal | null;
  withheld: readonly string[] = NONE;
  ownHeaders: readonly string[] = NONE;
  readonly #dispatched: Dispatched;
  readonly #sentTo: string[] = [];
  /** The exchange in progress. */
  #current: Assignment;
  #isOpen = false;
  /** The backend for which the answer of the current one was declined. */
  #next: Assignment | null = null;
  #pauseMs = 0;
  #span: OpenSpan | null = null;

  constructor(dispatched: Dispatched, first: Assignment) {
    const { request, reply, pool } = dispatched;
    this.#dispatched = dispatched;
    this.#current = first;
    this.method = request.method;
    this.path = originForm(request.raw.url ?? '/');
    this.headers = request.raw.rawHeaders;
    this.body = dispatched.body;
    this.response = reply.raw;
    this.keepsAuthorization = dispatched.keepsAuthorization;
    this.requestTimeoutMs = pool.limits.requestTimeoutMs;
    this.stallTimeoutMs = pool.limits.stallTimeoutMs;
    this.signal = dispatched.signal;
  }

  get backend(): ProxiedBackend {
    return this.#current.backend.proxied;
  }

  /** Begins the first exchange. Call it once. @throws what fails unexpectedly; the backend is free then */
  start(): void {
    this.#send(this.#current);
  }

  onHead(status: number, headers: string[]): RawHeaders | null {
    const { queued, pool, head, reply } = this.#dispatched;
    if (REFUSED.includes(status)) {
      this.#pauseMs = retryAfterMs(fieldOf(headers, 'retry-after'), Date.now()) ?? 0;
      this.#next = this.#assign();
      if (this.#next !== null) return null;
    }
    queued.hasAnswerBegun = true;
    if (status < 300) pool.onAnswerBegun(this.#current.backend, head.prompt);
    reply.hijack();
    return returnedFields(headers, this.#dispatched);
  }

  onFirstByte(ttfbMs: number): void {
    this.#dispatched.onFirstByte(this.#current.backend, ttfbMs);
  }

  onSettled(end: ExchangeEnd): void {
    // After an unexpected error, what was begun may still end.
    if (!this.#isOpen) return;
    try {
      this.#leave(end);
      this.#goOn(end);
    } catch (error) {
      this.#dispatched.onFailed(error);
    }
  }

  #send(assignment: Assignment): void {
    const { request, tracing } = this.#dispatched;
    const { id } = assignment.backend;
    this.#current = assignment;
    this.#isOpen = true;
    this.#next = null;
    this.#pauseMs = 0;
    this.#sentTo.push(id);
    try {
      const span = traceExchange(tracing, request, id);
      this.#span = span;
      if (this.#sentTo.length === 1) announceDispatch(this.#dispatched);
      this.withheld = withheldFields(request, span !== null);
      this.ownHeaders = ['x-request-id', request.id, ...traceFields(span)];
      passThrough(this, this);
    } catch (error) {
      this.#leave(UNKNOWN);
      throw error;
    }
  }

  /** The exchange with a backend is over. */
  #leave(end: ExchangeEnd): void {
    const { pool, head } = this.#dispatched;
    const { backend, sending } = this.#current;
    this.#isOpen = false;
    endExchangeSpan(this.#span, end);
    this.#span = null;
    backend.end(sending, { end, work: workOf(end, head), pauseMs: this.#pauseMs });
    pool.refresh();
  }

  #goOn(end: ExchangeEnd): void {
    const isFree = !end.isHeadSent && UNSERVED.includes(end.outcome);
    const next = isFree ? (this.#next ?? this.#assign()) : null;
    if (next !== null) this.#send(next);
    else this.#dispatched.onServed({ end, fault: faultOf(end), backend: this.#current.backend.id });
  }

  #assign(): Assignment | null {
    return this.#dispatched.assign(new Set(this.#sentTo));
  }
}

/** Ends after which another backend may be tried. */
const UNSERVED: readonly ExchangeEnd['outcome'][] = ['unreachable', 'declined'];

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
export function announceDispatch({ request, reply }: Pick<Dispatched, 'request' | 'reply'>): void {
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
