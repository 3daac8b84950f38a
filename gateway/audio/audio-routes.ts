import type { FastifyInstance } from 'fastify';
import { clientRequestId } from '../../http/context/request-id';
import type { AudioContext } from './audio-context';
import { handleForm } from './form-route';
import { handleSpeech } from './speech-route';

/** Paths below `/v1` whose requests are forms. */
const FORM_PATHS = ['/audio/transcriptions', '/audio/translations'] as const;
/** The path below `/v1` for speech. */
export const SPEECH_PATH = '/audio/speech';
/** Paths below `/v1` at which a request of an audio route is cancelled by its id. */
const CANCEL_PATHS = [
  '/audio/transcriptions/:request_id/cancel',
  '/audio/translations/:request_id/cancel',
  '/audio/speech/:request_id/cancel',
] as const;

/** The routes for recordings and speech, and for cancelling (docs/design/audio.md). */
export async function addAudioRoutes(app: FastifyInstance, context: AudioContext): Promise<void> {
  app.addHook('onRequest', (request, _reply, done) => {
    request.id = clientRequestId(request);
    done();
  });
  const [transcriptions, translations] = FORM_PATHS;
  app.post(transcriptions, (request, reply) => {
    handleForm(context, 'transcribe', { request, reply });
  });
  app.post(translations, (request, reply) => handleForm(context, 'translate', { request, reply }));
  app.post(SPEECH_PATH, (request, reply) => handleSpeech(context, request, reply));
  for (const path of CANCEL_PATHS) {
    app.post<{ Params: { request_id: string } }>(path, async ({ params, tenant, bodyPlace }) => {
      bodyPlace?.release();
      const { request_id: id } = params;
      return { request_id: id, cancelled: context.audio.scheduler.cancel(tenant, id) };
    });
  }
}
