import type { ServerResponse } from 'node:http';
import type { Generation } from './answers/generation';
import { ModelAnswer } from './answers/model-answer';
import { blocksOf } from './engine/blocks';
import type { EngineEvent } from './engine/engine';
import { BLOCK_TOKENS } from './engine/prefix-cache';
import type { EngineLoop, LoopRequest } from './engine-loop';
import { sendJson } from './json-exchange';
import type { LatencyTimers } from './latency';
import type { ModelMetrics } from './metrics';
import { queueFull, replyTo, type FailedReply } from './replies';
import type { SimulatorSettings } from './settings';
import type { Traffic } from './traffic';

/** One request to a model endpoint. */
export interface ModelCall {
  readonly endpoint: string;
  readonly requestId: string | undefined;
  readonly body: Buffer;
  readonly response: ServerResponse;
}

/** What serves model calls. */
export interface ModelBackend {
  readonly settings: SimulatorSettings;
  readonly traffic: Traffic;
  readonly latency: LatencyTimers;
  readonly loop: EngineLoop;
  readonly metrics: ModelMetrics;
}

/** Chooses the answer to one request and sends it after its latency, or as the engine generates it. */
export function answerModelCall(call: ModelCall, backend: ModelBackend): void {
  const { endpoint, body, response, requestId } = call;
  const { settings, traffic, metrics } = backend;
  const tries = traffic.began(endpoint, requestId);
  if (requestId !== undefined) response.setHeader('x-request-id', requestId);
  const reply = replyTo(endpoint, body, { settings, traffic, tries });
  if (reply.generation === null) {
    return sendAfter(call, backend, reply.delayMs, () => sendFailure(call, backend, reply));
  }
  const { generation, request, isCut, delayMs } = reply;
  const { stream, model } = request;
  const answer = new ModelAnswer({ response, generation, stream, isCut, traffic, metrics });
  if (delayMs !== null) {
    const cached = generation.estimatedCachedTokens;
    return sendAfter(call, backend, delayMs, () => answer.finish(cached));
  }
  if (generate(engineRequest(model, generation), { response, answer, backend })) return;
  sendFailure(call, backend, queueFull(settings));
}

/** Calls `send` after the delay, unless the client goes away before that. */
function sendAfter(
  { response }: ModelCall,
  { latency, traffic }: ModelBackend,
  delayMs: number,
  send: () => void,
): void {
  if (delayMs <= 0 && !latency.isStalled) return send();
  const cancel = latency.after(delayMs, () => {
    response.off('close', onClose);
    send();
  });
  const onClose = (): void => {
    cancel();
    traffic.cutOff();
  };
  response.once('close', onClose);
}

/** Requests to different models share no block. */
function engineRequest(model: string, generation: Generation): Omit<LoopRequest, 'onStep'> {
  const { promptTokens, outputTokens } = generation;
  const maxBlocks = Math.floor(promptTokens / BLOCK_TOKENS);
  const blocks = blocksOf(`${model}\0${generation.promptText()}`, maxBlocks);
  return { promptTokens, blocks, outputTokens };
}

/**
 * Lets the engine generate the answer. A client that goes away frees its slot. Returns false if slots and
 * queue are full; then nothing was sent.
 */
function generate(
  request: Omit<LoopRequest, 'onStep'>,
  {
    response,
    answer,
    backend: { loop, traffic },
  }: { response: ServerResponse; answer: ModelAnswer; backend: ModelBackend },
): boolean {
  const onStep = ({ tokens, cachedTokens, done }: EngineEvent<LoopRequest>): void => {
    if (!done && answer.generated(tokens)) return;
    response.off('close', onClose);
    if (done) answer.finish(cachedTokens);
    else loop.cancel(entry);
  };
  const onClose = (): void => {
    loop.cancel(entry);
    traffic.cutOff();
  };
  const entry: LoopRequest = { ...request, onStep };
  response.once('close', onClose);
  const isAccepted = loop.submit(entry);
  if (isAccepted) answer.begin();
  else response.off('close', onClose);
  return isAccepted;
}

function sendFailure({ response }: ModelCall, { traffic }: ModelBackend, reply: FailedReply): void {
  if (reply.drop) {
    traffic.cutOff();
    response.socket?.destroy();
    return;
  }
  traffic.ended(reply.status);
  const { retryAfterSec } = reply;
  if (retryAfterSec !== null) response.setHeader('retry-after', String(retryAfterSec));
  sendJson(response, reply.status, reply.body);
}
