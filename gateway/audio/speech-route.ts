import type { FastifyReply, FastifyRequest } from 'fastify';
import { isNightshiftError } from '../../core/errors';
import { handleRequest } from '../requests/handle-request';
import { readRequestHead } from '../requests/request-head';
import type { AudioContext } from './audio-context';
import { SpeechExchange } from './speech-exchange';
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
  if (!isReadable || !isOfAudioWorkers(context, body)) {
    handleRequest(context, request, reply);
    return;
  }
  const { settings } = context.audio;
  const wanted = readSpeechRequest(body, settings.max_input_characters);
  // The queue counts the body from here on.
  request.bodyPlace?.release();
  new SpeechExchange(context, { request, reply, wanted, bytes: body.length }).start();
}

/** @throws invalid_request if the body is not JSON of bounded depth, or names no model */
function isOfAudioWorkers({ audio }: AudioContext, body: Buffer): boolean {
  return audio.scheduler.models.includes(readRequestHead(body, null).model);
}
