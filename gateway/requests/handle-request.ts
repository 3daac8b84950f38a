import type { FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { endpointRule } from '../../core/openai/endpoints';
import { refuseBody } from './arriving-bodies';
import { GatewayExchange, type ReceivedRequest, type RequestContext } from './gateway-exchange';
import { readRequestHead } from './request-head';

/**
 * One request, from its body to the end of its answer (docs/design/gateway.md#the-gateway). It returns before the
 * answer; whatever becomes of the request, `reply` is answered or hijacked.
 */
export function handleRequest(
  context: RequestContext,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { config, pools } = context;
  // The queue counts the body from here on. Until it does, nothing else runs in this process.
  request.bodyPlace?.release();
  if (isNightshiftError(request.body, 'unavailable')) {
    refuseBody(context, request, reply);
    return;
  }
  const body = bodyOf(request);
  const { modelOptional } = endpointRule(request.routeOptions.url ?? '');
  const fallback = modelOptional ? config.batch.moderation_default_model : null;
  const head = readRequestHead(body, fallback);
  const pool = pools.poolOf(head.model);
  if (pool === null) throw unknownModel(head.model);
  startExchange(context, { request, reply, body, head, pool });
}

/** Hands a request to its pool. @param onOver called once, when everything that the request held is free */
export function startExchange(
  context: RequestContext,
  received: ReceivedRequest,
  onOver: (() => void) | null = null,
): void {
  const exchange = new GatewayExchange(context, received);
  const { request } = received;
  if (request.span === null) exchange.start(onOver);
  else {
    // The usage is known when the exchange has ended, which is after the answer.
    request.workAfterAnswer = new Promise((resolve) => {
      exchange.start(() => {
        onOver?.();
        resolve(undefined);
      });
    });
  }
}

/** The 404 of a model that nothing serves. */
export function unknownModel(model: string): NightshiftError {
  const message = `The model ${JSON.stringify(model)} does not exist.`;
  return new NightshiftError('not_found', message, { param: 'model', apiCode: 'model_not_found' });
}

/** The collected body. @throws what the parser left in its place; invalid_request without a body */
function bodyOf({ body }: FastifyRequest): Buffer {
  if (isNightshiftError(body)) throw body;
  if (Buffer.isBuffer(body) && body.length > 0) return body;
  throw new NightshiftError('invalid_request', 'The request must have a JSON body.');
}
