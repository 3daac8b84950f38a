import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServerResponse } from 'node:http';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import { isNightshiftError } from '../../core/errors';
import { endWith } from '../../http/connections/bare-answer';
import { headerValues } from '../../http/headers/header-values';
import { bandOf } from '../requests/admission-rules';
import { refuseBody } from '../requests/arriving-bodies';
import { startExchange, unknownModel } from '../requests/handle-request';
import type { AudioContext } from './audio-context';
import { AudioExchange } from './audio-exchange';
import { answerTooEarly, isTooEarly } from './early-requests';
import { checkFormHead, declaredBytes, type ReceivedForm, receiveForm } from './receive-form';
import { ReceivedBody } from './received-body';
import { inspectRecording } from './recording';
import { modelOf, readTranscriptionRequest, type TranscriptionTask } from './transcription-request';

/** How long a form may take to arrive, ms (docs/design/audio.md#forms). */
const FORM_TIMEOUT_MS = 600_000;
const NO_PROMPT = { bytes: Buffer.alloc(0), ranges: [] };

/** A form that has arrived. */
interface Arrived {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly body: ReceivedBody;
  readonly form: ReceivedForm;
  readonly band: Band;
}

/**
 * Serves one form (docs/design/audio.md#life-of-a-request). It returns at once; whatever becomes of the request, `reply`
 * is answered or hijacked, and its bytes are freed.
 */
export function handleForm(
  context: AudioContext,
  task: TranscriptionTask,
  { request, reply }: Pick<Arrived, 'request' | 'reply'>,
): void {
  const band = audioBand(context, request);
  const body = new ReceivedBody({
    spool: context.audio.spool,
    memory: request.bodyPlace,
    isSheddable: band === BAND.sheddable,
    declaredBytes: declaredBytes(request),
    onSpoolError: (err) => context.logger.error({ err }, 'the spool failed'),
  });
  const serve = async (): Promise<void> => {
    const form = await arrive(context, { request, reply, body });
    await dispatchForm(context, task, { request, reply, body, form, band });
  };
  serve().catch((error: unknown) => {
    body.destroy();
    // What is left of the body is dropped, so that the client sees the answer.
    request.raw.resume();
    if (isNightshiftError(error, 'unavailable')) refuseBody(context, request, reply);
    else reply.send(error);
  });
}

/** Reads the whole form. */
async function arrive(
  { audio }: AudioContext,
  { request, reply, body }: Pick<Arrived, 'request' | 'reply' | 'body'>,
): Promise<ReceivedForm> {
  const { max_file_bytes: maxFileBytes } = audio.settings;
  const boundary = checkFormHead(request, maxFileBytes);
  body.evictable(() => body.destroy());
  body.reserve();
  const timer = setTimeout(() => endLate(reply.raw), FORM_TIMEOUT_MS);
  try {
    return await receiveForm(request, { boundary, maxFileBytes, body });
  } finally {
    clearTimeout(timer);
    // Until it is scheduled it stays: what is read of it would look like a wrong recording.
    body.evictable(null);
  }
}

/** Hands a form to whoever serves its model. */
async function dispatchForm(
  context: AudioContext,
  task: TranscriptionTask,
  arrived: Arrived,
): Promise<void> {
  const { request, reply, body, form, band } = arrived;
  const model = modelOf(form.fields);
  if (!context.audio.scheduler.models.includes(model)) {
    passOn(context, model, arrived);
    return;
  }
  const wanted = readTranscriptionRequest(task, form.fields);
  const { file, recording } = await inspectRecording(body, form.file);
  new AudioExchange(context, { request, reply, body, file, recording, wanted, band }).start();
}

/** Sends a form to the HTTP pool of its model, byte for byte. */
function passOn(
  context: AudioContext,
  model: string,
  { request, reply, body, form, band }: Arrived,
): void {
  if (isTooEarly(context, model)) {
    body.destroy();
    answerTooEarly(context, reply, band);
    return;
  }
  const pool = context.pools.poolOf(model);
  if (pool === null) throw unknownModel(model);
  const head = {
    ...{ model, maxTokens: null, serviceTier: null, prompt: NO_PROMPT, promptBytes: 0 },
    isStream: form.fields.get('stream')?.includes('true') === true,
  };
  request.bodyPlace?.release();
  const bytes = body.bytes();
  startExchange(context, { request, reply, body: bytes, head, pool }, () => body.destroy());
}

/**
 * The band of a request: `default_priority`, unless its header asks for one. Only what the header asks for is limited by
 * the `max_band` of the tenant.
 */
function audioBand({ config, audio }: AudioContext, request: FastifyRequest): Band {
  const { isWorker, tenant } = request;
  const { objectives } = config.gateway;
  const [objective = ''] = headerValues(request, 'x-gateway-inference-objective');
  if (!isWorker && !Object.hasOwn(objectives, objective)) {
    const { default_priority: priority } = audio.settings.scheduler;
    return priority === 'REALTIME' ? BAND.critical : BAND.standard;
  }
  const rules = { gateway: config.gateway, isOpen: config.auth.mode === 'none' };
  return bandOf(request, { isWorker, tenant, serviceTier: null }, rules);
}

/** Ends the connection of a form that takes too long; its reader sees it as cut. */
function endLate({ socket, headersSent }: ServerResponse): void {
  if (socket === null || headersSent) return;
  const message = `The form took longer than ${FORM_TIMEOUT_MS / 60_000} minutes to arrive.`;
  endWith(socket, { status: 408, message });
}
