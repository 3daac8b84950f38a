import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DropCode, FaultCode } from '../../core/dispatch/drop-codes';
import { BAND } from '../../core/dispatch/queue/band';
import {
  type DispatchedBy,
  QueuedRequest,
  type RequestOptions,
} from '../../core/dispatch/queue/queued-request';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import type { BodySource } from '../../inference/proxy/proxied-backend';
import { redactUrl } from '../../platform/config-redact';
import type { Config } from '../../platform/config-schema';
import type { GatewayMetrics } from '../../platform/gateway-metrics';
import { answerFault } from '../answers/drop-answer';
import type { GatewayPool } from '../pools/gateway-pool';
import type { PoolBackend } from '../pools/pool-backend';
import type { PoolTable } from '../pools/pool-table';
import { Admission, type AdmissionPorts } from './admission';
import { bandOf, prefixOf, priorityOf, waitLimitMs } from './admission-rules';
import type { FaultLog } from './fault-log';
import type { RequestHead } from './request-head';
import { RequestMeter } from './request-meter';
import { type GatewayTracing, traceEnd, traceQueue } from './request-trace';
import { type Assignment, type Dispatched, isCut, isSuccess, type Served, Serving } from './serve';
import { BYTES_PER_TOKEN, tokensOf, usageOf } from './used-tokens';

/** What every request needs. */
export interface RequestContext {
  readonly config: Pick<Config, 'auth' | 'batch' | 'gateway'>;
  readonly pools: PoolTable;
  readonly metrics: Pick<GatewayMetrics, 'flow'>;
  readonly tracing: GatewayTracing | null;
  readonly faults: Pick<FaultLog, 'log'>;
  /** Milliseconds of a monotonic clock, that of the pools. */
  readonly now: () => number;
}

const NONE_TRIED: ReadonlySet<string> = new Set();

/** One request, and what was read of it. */
export interface ReceivedRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly body: Buffer | BodySource;
  readonly head: RequestHead;
  readonly pool: GatewayPool;
}

/**
 * One request in a pool, from its arrival in the queue to the end of its answer. It is one object, which the queue and
 * the exchange use as it is: copies of parts of it would cost a small request as much as the queue does.
 */
export class GatewayExchange implements AdmissionPorts, Dispatched {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly body: Buffer | BodySource;
  readonly head: RequestHead;
  readonly pool: GatewayPool;
  readonly meter: RequestMeter;
  readonly tracing: GatewayTracing | null;
  readonly keepsAuthorization: boolean;
  readonly queued: QueuedRequest;
  waitedMs = 0;
  readonly #context: RequestContext;
  readonly #arrivedMs: number;
  readonly #abort: AbortController | null;
  readonly #admission: Admission;
  #onOver: (() => void) | null = null;
  #isOver = false;

  constructor(context: RequestContext, received: ReceivedRequest) {
    const { request, pool, head } = received;
    this.#context = context;
    this.#arrivedMs = context.now();
    this.request = request;
    this.reply = received.reply;
    this.body = received.body;
    this.head = head;
    this.pool = pool;
    this.tracing = context.tracing;
    this.keepsAuthorization = context.config.auth.mode !== 'api_key' && !request.isWorker;
    // A controller costs more than the queue, and only reclaiming needs one.
    this.#abort = pool.reclaims ? new AbortController() : null;
    this.#admission = new Admission(this);
    this.queued = this.#queuedRequest();
    const { tenant } = request;
    this.meter = new RequestMeter(context.metrics.flow, { tenant, model: head.model });
  }

  get signal(): AbortSignal | null {
    return this.#abort === null ? null : this.#abort.signal;
  }

  /**
   * Hands the request to its pool, which may send or drop it before this returns. Everything that follows calls back:
   * each promise on the way would cost a short request more than its way through the queue.
   *
   * @param onOver called once, when everything that the request held is free
   */
  start(onOver: (() => void) | null = null): void {
    this.#onOver = onOver;
    this.#admission.enter(this.queued);
  }

  onDispatched(by: DispatchedBy): void {
    try {
      const first = this.assign(NONE_TRIED);
      this.#leaveQueue(by);
      if (first === null) this.onServed({ end: null, fault: 'no_backends', backend: null });
      else new Serving(this, first).start();
    } catch (error) {
      // The controller would only log it, and the client would wait for ever.
      this.onFailed(error);
    }
  }

  onDropped(code: DropCode): void {
    try {
      this.#leaveQueue(null);
      this.meter.waited(this.waitedMs, false);
      this.#report({ end: null, fault: code, backend: null });
      this.#end(code);
    } catch (error) {
      this.onFailed(error);
    }
  }

  onServed(served: Served): void {
    const { end, fault } = served;
    const tokens = end === null ? 0 : tokensOf(end, this.head);
    this.#complete(end === null ? 0 : this.#realCost(end), tokens);
    this.#report(served);
    this.meter.waited(this.waitedMs, isSuccess(served));
    this.#end(fault);
  }

  onFailed(error: unknown): void {
    if (this.#isOver) return;
    this.#free();
    // The framework answers and logs it.
    if (!this.reply.sent) this.reply.send(error);
  }

  assign(tried: ReadonlySet<string>): Assignment | null {
    const { band, cost } = this.queued;
    const backend = this.pool.choose({ band, prompt: this.head.prompt, tried });
    if (backend === null) return null;
    return { backend, sending: backend.begin({ requestId: this.request.id, cost, band }) };
  }

  reclaim(): void {
    this.#abort?.abort();
  }

  onFirstByte(backend: PoolBackend, ttfbMs: number): void {
    const { head, pool } = this;
    const { band } = this.queued;
    this.meter.firstByte(band, ttfbMs);
    if (!head.isStream || band === BAND.sheddable) return;
    pool.onFirstByte(backend, { promptTokens: head.promptBytes / BYTES_PER_TOKEN, ttfbMs });
  }

  /** @param by what made it its turn; null if it was dropped */
  #leaveQueue(by: DispatchedBy | null): void {
    const { request, pool, queued } = this;
    if (by !== 'bypass') this.waitedMs = this.#context.now() - this.#arrivedMs;
    traceQueue(request, { pool: pool.name, queued, waitedMs: this.waitedMs, by });
  }

  /** @param fault why the gateway has to answer; null if a backend did */
  #end(fault: FaultCode | null): void {
    if (fault !== null) this.#answer(fault);
    this.#free();
  }

  /** The last step of every request, also of one that fails unexpectedly. */
  #free(): void {
    this.#isOver = true;
    try {
      // What the backend did is not known.
      if (this.queued.state === 'dispatched') this.#complete(this.queued.cost, 0);
    } finally {
      this.meter.close();
      this.#onOver?.();
    }
  }

  /** Puts the end on the span, and into the log if the client has no complete answer. */
  #report(served: Served): void {
    const { request, pool, waitedMs } = this;
    const { band, model } = this.queued;
    const { end, fault, backend } = served;
    traceEnd(request, served);
    const code = isCut(served) ? 'answer_cut' : fault;
    if (code === 'answer_cut') this.meter.cut(band);
    if (code === null) return;
    this.#context.faults.log({
      ...{ code, band, model, waitedMs, pool: pool.name },
      ...{ requestId: request.id, tenant: request.tenant },
      backend: backend === null ? null : redactUrl(backend),
      reason: end?.message ?? null,
    });
  }

  /** Frees the stock. It is called exactly once for each dispatched request, after its last exchange. */
  #complete(cost: number, tokens: number): void {
    const { pool, queued, meter } = this;
    pool.controller.onRequestComplete(queued, cost);
    // Without a usage, the cost is only what was expected.
    meter.served(queued.band, tokens > 0 ? cost : 0);
    if (tokens > 0) queued.flow?.onServed(tokens, this.#context.now());
  }

  #queuedRequest(): QueuedRequest {
    const { request, head, pool } = this;
    const { isWorker, tenant } = request;
    const { gateway, auth } = this.#context.config;
    const { model, serviceTier } = head;
    const rules = { gateway, isOpen: auth.mode === 'none' };
    const band = bandOf(request, { isWorker, tenant, serviceTier }, rules);
    const { output } = pool.controller.flowOf(band, tenant, model);
    const options: RequestOptions = {
      tenant,
      model,
      band,
      id: request.id,
      cost: pool.costs.expected(head, output),
      // The spool counts what is in it.
      bytes: Buffer.isBuffer(this.body) ? this.body.length : 0,
      priority: priorityOf(request, isWorker),
      prefix: prefixOf(request, isWorker),
      deadlineMs: this.#arrivedMs + waitLimitMs(request),
    };
    return new QueuedRequest(options, this.#admission);
  }

  #realCost(end: ExchangeEnd): number {
    const { pool } = this;
    const { band, tenant, model, cost } = this.queued;
    const usage = usageOf(end, this.head);
    if (usage !== null) {
      const { output } = pool.controller.flowOf(band, tenant, model);
      return pool.costs.real(usage, output);
    }
    // A request that no backend worked on used nothing. Of others it is not known what they used.
    const isUnserved =
      ['unreachable', 'declined'].includes(end.outcome) || (end.status ?? 0) >= 400;
    return isUnserved ? 0 : cost;
  }

  #answer(fault: FaultCode): void {
    const { reply, pool } = this;
    const { band } = this.queued;
    this.meter.dropped(band, fault);
    if (fault === 'client_closed' || reply.raw.destroyed) {
      reply.hijack();
      return;
    }
    answerFault(reply, fault, {
      policy: this.#context.config.gateway.status_policy,
      readyBackends: pool.readyBackends,
      retryAfterSec: pool.controller.retryAfterSec(band),
    });
  }
}
