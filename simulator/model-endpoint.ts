import type { ServerResponse } from 'node:http';
import { NightshiftError, isNightshiftError } from '../core/errors';
import { ANSWER_BUILDERS, type ModelAnswer } from './answers';
import { errorBody, sendJson } from './http';
import { parseModelRequest, type ModelRequest, type RequestedFault } from './request';
import type { SimulatorSettings } from './settings';
import type { Traffic } from './traffic';

/** One request to a model endpoint. */
export interface ModelCall {
  readonly endpoint: string;
  readonly requestId: string | undefined;
  readonly body: Buffer;
  readonly response: ServerResponse;
  readonly settings: SimulatorSettings;
  readonly traffic: Traffic;
}

/** The answer, which is sent after `delayMs`. */
interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly answer: ModelAnswer | null;
  readonly delayMs: number;
  readonly retryAfterSec: number | null;
  readonly drop: boolean;
}

/** Chooses the answer to one request and sends it after its latency. */
export function answerModelCall(call: ModelCall): void {
  const { traffic, response } = call;
  const tries = traffic.began(call.endpoint, call.requestId);
  const reply = replyTo(call, tries);
  if (reply.delayMs <= 0) return send(call, reply);
  const timer = setTimeout(() => {
    response.off('close', onClose);
    send(call, reply);
  }, reply.delayMs);
  const onClose = (): void => {
    clearTimeout(timer);
    traffic.cutOff();
  };
  response.once('close', onClose);
}

function send({ response, traffic, requestId }: ModelCall, reply: Reply): void {
  if (reply.drop) {
    traffic.cutOff();
    response.socket?.destroy();
    return;
  }
  traffic.ended(reply.status, reply.answer);
  if (requestId !== undefined) response.setHeader('x-request-id', requestId);
  if (reply.retryAfterSec !== null) response.setHeader('retry-after', String(reply.retryAfterSec));
  sendJson(response, reply.status, reply.body);
}

function replyTo(call: ModelCall, tries: number): Reply {
  const { settings, traffic } = call;
  const { maxConcurrency, retryAfterSec } = settings;
  if (maxConcurrency > 0 && traffic.inFlight > maxConcurrency) {
    const message = `more than ${maxConcurrency} requests at once`;
    return failure(429, message, { retryAfterSec });
  }
  try {
    const request = parseModelRequest(call.endpoint, call.body);
    checkModel(request, settings);
    traffic.asked(request.model);
    const { fault } = request;
    const applies = fault.times === null || tries <= fault.times;
    return applies && isFailure(fault)
      ? faultReply(fault, settings)
      : success(request, settings, applies ? fault.delayMs : null);
  } catch (error) {
    if (!isNightshiftError(error)) throw error;
    return { ...failure(error.httpStatus, error.message), body: errorBody(error) };
  }
}

function success(
  request: ModelRequest,
  settings: SimulatorSettings,
  delayMs: number | null,
): Reply {
  const delay = delayMs ?? latencyOf(settings);
  if (settings.errorRate > 0 && Math.random() < settings.errorRate) {
    return failure(500, 'the simulated model failed at random', { delayMs: delay });
  }
  const answer = ANSWER_BUILDERS.get(request.endpoint)?.(request, settings);
  if (answer === undefined) throw new NightshiftError('not_found', `no such endpoint`);
  const { body } = answer;
  return { status: 200, body, answer, delayMs: delay, retryAfterSec: null, drop: false };
}

function isFailure({ drop, status }: RequestedFault): boolean {
  return drop || (status !== null && status !== 200);
}

function faultReply(fault: RequestedFault, settings: SimulatorSettings): Reply {
  const { retryAfterSec, drop, status } = fault;
  const delayMs = fault.delayMs ?? latencyOf(settings);
  const message = `the request asked for status ${status}`;
  return { ...failure(status ?? 500, message, { retryAfterSec, delayMs }), drop };
}

function failure(
  status: number,
  message: string,
  { retryAfterSec = null, delayMs = 0 }: { retryAfterSec?: number | null; delayMs?: number } = {},
): Reply {
  const body = errorBody({ httpStatus: status, message, param: null, apiCode: null });
  return { status, body, answer: null, delayMs, retryAfterSec, drop: false };
}

function checkModel({ model }: ModelRequest, { models }: SimulatorSettings): void {
  if (models.length === 0 || models.includes(model)) return;
  throw new NightshiftError('not_found', `The model \`${model}\` does not exist`, {
    param: 'model',
    apiCode: 'model_not_found',
  });
}

function latencyOf({ latencyMs, latencyJitterMs }: SimulatorSettings): number {
  return Math.max(0, latencyMs + (Math.random() * 2 - 1) * latencyJitterMs);
}
