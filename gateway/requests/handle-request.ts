import type { FastifyReply, FastifyRequest } from 'fastify';
import { BAND } from '../../core/dispatch/queue/band';
import type { QueuedRequest } from '../../core/dispatch/queue/queued-request';
import { endpointRule } from '../../core/openai/endpoints';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import type { Config } from '../../platform/config-schema';
import type { GatewayMetrics } from '../../platform/gateway-metrics';
import type { FaultCode } from '../../core/dispatch/drop-codes';
import { answerFault } from '../answers/drop-answer';
import type { GatewayPool } from '../pools/gateway-pool';
import type { PoolBackend } from '../pools/pool-backend';
import type { PoolTable } from '../pools/pool-table';
import { admit, type Assignment } from './admission';
import { bandOf, prefixOf, priorityOf, waitLimitMs } from './admission-rules';
import { refuseBody } from './arriving-bodies';
import { readRequestHead, type RequestHead } from './request-head';
import { RequestMeter } from './request-meter';
import { type GatewayTracing, traceEnd, traceQueue } from './request-trace';
import { serve, type Served } from './serve';

/** What every request needs. */
export interface RequestContext {
  readonly config: Pick<Config, 'auth' | 'batch' | 'gateway'>;
  readonly pools: PoolTable;
  readonly metrics: Pick<GatewayMetrics, 'flow'>;
  readonly tracing: GatewayTracing | null;
  /** Milliseconds of a monotonic clock, that of the pools. */
  readonly now: () => number;
}

/** One request, from its body to the end of its answer (docs/design/gateway.md#the-gateway). */
export async function handleRequest(
  context: RequestContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { config, pools } = context;
  // The queue counts the body from here on. Until it does, nothing else runs in this process.
  request.bodyPlace?.release();
  if (isNightshiftError(request.body, 'unavailable')) return refuseBody(context, request, reply);
  const body = bodyOf(request);
  const { modelOptional } = endpointRule(request.routeOptions.url ?? '');
  const fallback = modelOptional ? config.batch.moderation_default_model : null;
  const head = readRequestHead(body, fallback);
  const pool = pools.poolOf(head.model);
  if (pool === null) {
    throw new NightshiftError(
      'not_found',
      `The model ${JSON.stringify(head.model)} does not exist.`,
      {
        param: 'model',
        apiCode: 'model_not_found',
      },
    );
  }
  const answered = new GatewayExchange({ context, request, reply, body, head, pool }).run();
  // The usage is known when the exchange has ended, which is after the answer.
  if (request.span !== null) request.workAfterAnswer = answered.catch(() => undefined);
  return answered;
}

interface ExchangeParts {
  readonly context: RequestContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly body: Buffer;
  readonly head: RequestHead;
  readonly pool: GatewayPool;
}

class GatewayExchange {
  readonly #parts: ExchangeParts;
  readonly #arrivedMs: number;
  readonly #abort: AbortController | null;
  readonly #meter: RequestMeter;
  /** What it is expected to cost. */
  #cost = 1;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
    const { tenant } = parts.request;
    this.#meter = new RequestMeter(parts.context.metrics.flow, { tenant, model: parts.head.model });
    this.#arrivedMs = parts.context.now();
    // A controller costs more than the queue, and only reclaiming needs one.
    this.#abort = parts.pool.reclaims ? new AbortController() : null;
  }

  async run(): Promise<unknown> {
    try {
      return await this.#run();
    } finally {
      this.#meter.close();
    }
  }

  async #run(): Promise<unknown> {
    const { context, request, reply, pool } = this.#parts;
    const { request: queued, verdict } = await admit(this.#queueOptions(), {
      pool,
      meter: this.#meter,
      assign: (dispatched) => this.#assign(dispatched, new Set()),
      reclaimed: () => this.#abort?.abort(),
      response: reply.raw,
    });
    const isBypass = verdict.dropped === null && verdict.by === 'bypass';
    const waitedMs = isBypass ? 0 : context.now() - this.#arrivedMs;
    const by = verdict.dropped === null ? verdict.by : null;
    traceQueue(request, { pool: pool.name, queued, waitedMs, by });
    if (verdict.dropped !== null) {
      this.#meter.waited(waitedMs, false);
      traceEnd(request, { end: null, fault: verdict.dropped });
      return this.#answer(queued, verdict.dropped);
    }
    if (request.isWorker && request.raw.httpVersionMinor > 0) reply.raw.writeProcessing();
    const served = await this.#serve(queued, { first: verdict.first, waitedMs });
    this.#complete(queued, served);
    traceEnd(request, served);
    const status = served.end?.status ?? 0;
    this.#meter.waited(waitedMs, status >= 200 && status < 300);
    return served.fault === null ? undefined : this.#answer(queued, served.fault);
  }

  #queueOptions() {
    const { context, request, head, pool } = this.#parts;
    const { isWorker, tenant } = request;
    const { gateway, auth } = context.config;
    const rules = { gateway, isOpen: auth.mode === 'none' };
    const band = bandOf(request, { isWorker, tenant, serviceTier: head.serviceTier }, rules);
    const { output } = pool.controller.flowOf(band, tenant, head.model);
    this.#cost = pool.costs.expected(head, output);
    return {
      ...{ tenant, model: head.model, band, cost: this.#cost, id: request.id },
      bytes: this.#parts.body.length,
      priority: priorityOf(request, isWorker),
      prefix: prefixOf(request, isWorker),
      deadlineMs: this.#arrivedMs + waitLimitMs(request),
    };
  }

  #assign({ band }: QueuedRequest, tried: ReadonlySet<string>): Assignment | null {
    const { pool, head, request } = this.#parts;
    const backend = pool.choose({ band, prompt: head.prompt, tried });
    return backend === null ? null : { backend, sending: backend.begin(request.id, this.#cost) };
  }

  #serve(
    queued: QueuedRequest,
    { first, waitedMs }: { first: Assignment | null; waitedMs: number },
  ): Promise<Served> {
    const { context, request, reply, body, head, pool } = this.#parts;
    const { auth } = context.config;
    return serve(
      {
        ...{ pool, queued, body, request, reply, waitedMs, prompt: head.prompt },
        tracing: context.tracing,
        keepsAuthorization: auth.mode !== 'api_key' && !request.isWorker,
        signal: this.#abort?.signal ?? null,
        assign: (tried) => this.#assign(queued, tried),
        onFirstByte: (backend, ttfbMs) => this.#onFirstByte(queued, backend, ttfbMs),
        tokensOf: (end) => tokensOf(end, head),
      },
      first,
    );
  }

  #onFirstByte({ band }: QueuedRequest, backend: PoolBackend, ttfbMs: number): void {
    const { head, pool } = this.#parts;
    this.#meter.firstByte(band, ttfbMs);
    if (!head.isStream || band === BAND.sheddable) return;
    const promptTokens = head.promptBytes / BYTES_PER_TOKEN;
    pool.onFirstByte(backend, { promptTokens, ttfbMs });
  }

  /** Frees the stock. It is called exactly once for each dispatched request, after its last exchange. */
  #complete(queued: QueuedRequest, { end }: Served): void {
    const { context, head, pool } = this.#parts;
    const cost = end === null ? 0 : this.#realCost(queued, end);
    pool.controller.onRequestComplete(queued, cost);
    const tokens = end === null ? 0 : tokensOf(end, head);
    this.#meter.served(queued.band, tokens);
    if (tokens > 0) queued.flow?.onServed(tokens, context.now());
  }

  #realCost({ band, tenant, model }: QueuedRequest, end: ExchangeEnd): number {
    const { head, pool } = this.#parts;
    const usage = usageOf(end, head);
    if (usage !== null) {
      const { output } = pool.controller.flowOf(band, tenant, model);
      return pool.costs.real(usage, output);
    }
    // A request that no backend worked on used nothing. Of others it is not known what they used.
    const isUnserved =
      ['unreachable', 'declined'].includes(end.outcome) || (end.status ?? 0) >= 400;
    return isUnserved ? 0 : this.#cost;
  }

  #answer(queued: QueuedRequest, fault: FaultCode): unknown {
    const { context, reply, pool } = this.#parts;
    const { config } = context;
    this.#meter.dropped(queued.band, fault);
    if (fault === 'client_closed' || reply.raw.destroyed) {
      reply.hijack();
      return undefined;
    }
    return answerFault(reply, fault, {
      policy: config.gateway.status_policy,
      readyBackends: pool.readyBackends,
      retryAfterSec: pool.controller.retryAfterSec(queued.band),
    });
  }
}

const BYTES_PER_TOKEN = 4;

/** Input and output tokens; null if they are not known. A stream without usage has one token per event. */
function usageOf({ usage, events }: ExchangeEnd, { promptBytes }: RequestHead) {
  if (usage !== null) return usage;
  if (events === 0) return null;
  return { inputTokens: promptBytes / BYTES_PER_TOKEN, outputTokens: events };
}

function tokensOf(end: ExchangeEnd, head: RequestHead): number {
  const usage = usageOf(end, head);
  return usage === null ? 0 : usage.inputTokens + usage.outputTokens;
}

/** The collected body. @throws what the parser left in its place; invalid_request without a body */
function bodyOf({ body }: FastifyRequest): Buffer {
  if (isNightshiftError(body)) throw body;
  if (Buffer.isBuffer(body) && body.length > 0) return body;
  throw new NightshiftError('invalid_request', 'The request must have a JSON body.');
}
