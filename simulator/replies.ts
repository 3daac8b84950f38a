import { NightshiftError, isNightshiftError } from '../core/errors';
import { ANSWER_BUILDERS } from './answers/builders';
import type { Generation } from './answers/generation';
import { errorBody } from './json-exchange';
import { parseModelRequest, type ModelRequest } from './request';
import type { SimulatorSettings } from './settings';
import type { Traffic } from './traffic';

/** An error that is sent after a delay, or a connection that is closed after it. */
export interface FailedReply {
  readonly generation: null;
  readonly status: number;
  readonly body: unknown;
  readonly delayMs: number;
  readonly retryAfterSec: number | null;
  readonly drop: boolean;
}

/** An answer of the model. */
export interface AnswerReply {
  readonly generation: Generation;
  readonly request: ModelRequest;
  /** After this time it is sent as a whole; `null` lets the engine generate it. */
  readonly delayMs: number | null;
  /** Whether the connection is closed in the middle of it. */
  readonly isCut: boolean;
}

/** What decides a reply besides the request. */
export interface ReplyContext {
  readonly settings: SimulatorSettings;
  readonly traffic: Traffic;
  /** How many requests with this id there were, including this one. */
  readonly tries: number;
}

/** Decides how to reply to one request to a model endpoint. */
export function replyTo(
  endpoint: string,
  body: Buffer,
  context: ReplyContext,
): FailedReply | AnswerReply {
  const { settings, traffic } = context;
  const { maxConcurrency, retryAfterSec, notReady } = settings;
  if (notReady) return failure(503, 'the model is not ready');
  if (maxConcurrency > 0 && traffic.inFlight > maxConcurrency) {
    return failure(429, `more than ${maxConcurrency} requests at once`, { retryAfterSec });
  }
  try {
    return replyToRequest(parseModelRequest(endpoint, body), context);
  } catch (error) {
    if (!isNightshiftError(error)) throw error;
    return { ...failure(error.httpStatus, error.message), body: errorBody(error) };
  }
}

/** The reply to a request for which neither a slot nor a place in the queue is free. */
export function queueFull({ maxQueue, retryAfterSec }: SimulatorSettings): FailedReply {
  const message = `all slots are taken and ${maxQueue} requests are waiting`;
  return failure(429, message, { retryAfterSec });
}

function replyToRequest(
  request: ModelRequest,
  { settings, traffic, tries }: ReplyContext,
): FailedReply | AnswerReply {
  checkModel(request, settings);
  traffic.asked(request.model);
  const { fault } = request;
  const applies = fault.times === null || tries <= fault.times;
  if (applies && isFailure(request)) return requestedFailure(request, settings);
  const delayMs = applies ? fault.delayMs : null;
  if (happens(settings.errorRate)) {
    const message = 'the simulated model failed at random';
    return failure(500, message, { delayMs: delayMs ?? latencyOf(settings) });
  }
  const generation = ANSWER_BUILDERS.get(request.endpoint)?.(request, settings);
  if (generation === undefined) throw new NightshiftError('not_found', 'no such endpoint');
  const usesEngine = delayMs === null && settings.slots > 0;
  return {
    generation,
    request,
    delayMs: usesEngine ? null : (delayMs ?? latencyOf(settings)),
    isCut: happens(settings.cutRate),
  };
}

function isFailure({ fault: { drop, status } }: ModelRequest): boolean {
  return drop || (status !== null && status !== 200);
}

function requestedFailure({ fault }: ModelRequest, settings: SimulatorSettings): FailedReply {
  const { retryAfterSec, drop, status } = fault;
  const delayMs = fault.delayMs ?? latencyOf(settings);
  const message = `the request asked for status ${status}`;
  return { ...failure(status ?? 500, message, { retryAfterSec, delayMs }), drop };
}

function failure(
  status: number,
  message: string,
  { retryAfterSec = null, delayMs = 0 }: { retryAfterSec?: number | null; delayMs?: number } = {},
): FailedReply {
  const body = errorBody({ httpStatus: status, message, param: null, apiCode: null });
  return { generation: null, status, body, delayMs, retryAfterSec, drop: false };
}

function checkModel({ model }: ModelRequest, { models }: SimulatorSettings): void {
  if (models.length === 0 || models.includes(model)) return;
  throw new NightshiftError('not_found', `The model \`${model}\` does not exist`, {
    param: 'model',
    apiCode: 'model_not_found',
  });
}

function happens(rate: number): boolean {
  return rate > 0 && Math.random() < rate;
}

function latencyOf({ latencyMs, latencyJitterMs }: SimulatorSettings): number {
  return Math.max(0, latencyMs + (Math.random() * 2 - 1) * latencyJitterMs);
}
