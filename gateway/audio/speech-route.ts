import type { FastifyReply, FastifyRequest } from 'fastify';
import { isNightshiftError } from '../../core/errors';
import { handleRequest } from '../requests/handle-request';
import { readRequestHead } from '../requests/request-head';
import type { AudioContext } from './audio-context';
import { answerTooEarly, isTooEarly } from './early-requests';
import { speechBand, SpeechExchange } from './speech-exchange';
import { readSpeechRequest } from './speech-request';

/**
 * Serves one request for speech (docs/design/audio.md#speech). A model without an audio worker is one of a pool, which
 * gets the body as it is. It returns before the answer.
 */
export function handleSpeech(
  context: AudioContext,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { body } = request;
  const isReadable = Buffer.isBuffer(body) && body.length > 0 && !isNightshiftError(body);
  // Anything that is wrong with the body is refused as everywhere.
  if (!isReadable) {
    handleRequest(context, request, reply);
    return;
  }
  const { model } = readRequestHead(body, null);
  const { settings, scheduler } = context.audio;
  if (!scheduler.models.includes(model)) {
    if (isTooEarly(context, model)) refuseEarly(context, request, reply);
    else handleRequest(context, request, reply);
    return;
  }
  const wanted = readSpeechRequest(body, settings.max_input_characters);
  // The queue counts the body from here on.
  request.bodyPlace?.release();
  new SpeechExchange(context, { request, reply, wanted, bytes: body.length }).start();
}

function refuseEarly(context: AudioContext, request: FastifyRequest, reply: FastifyReply): void {
  request.bodyPlace?.release();
  answerTooEarly(context, reply, speechBand(context, request));
}
