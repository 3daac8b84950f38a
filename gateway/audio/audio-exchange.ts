import type { FastifyReply, FastifyRequest } from 'fastify';
import { longestDurationSec, recordingCost } from '../../core/audio/call-deadline';
import type { AudioNeed } from '../../core/audio/audio-need';
import { type Transcription, transcriptionBody } from '../../core/audio/transcription';
import type { Band } from '../../core/dispatch/queue/band';
import { NightshiftError } from '../../core/errors';
import { whenClosed } from '../../http/connections/exchanges';
import { JSON_TYPE } from '../../http/errors/error-envelope';
import { priorityOf, waitLimitMs } from '../requests/admission-rules';
import { announceDispatch } from '../requests/serve';
import { traceEnd } from '../requests/request-trace';
import type { AudioContext } from './audio-context';
import { AudioFaults, type FaultEnd } from './audio-faults';
import type { AudioJob, AudioJobEnd, AudioJobOwner } from './job';
import type { ReceivedBody } from './received-body';
import type { Recording } from './recording';
import { traceOf } from './trace-of';
import { TranscriptEvents } from './transcript-events';
import type { TranscriptionRequest } from './transcription-request';
import type { FormFile } from './receive-form';

/** A form for an audio worker, and what was read of it. */
export interface ReceivedTranscription {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly body: ReceivedBody;
  readonly file: FormFile;
  readonly recording: Recording;
  readonly wanted: TranscriptionRequest;
  readonly band: Band;
}

const NO_DELTAS = { wantDeltas: false };
const WIRE_TASKS = { transcribe: 'TRANSCRIBE', translate: 'TRANSLATE' } as const;

/** One transcription or translation, from the complete form to the end of its answer. */
export class AudioExchange implements AudioJobOwner {
  readonly #context: AudioContext;
  readonly #received: ReceivedTranscription;
  readonly #arrivedMs: number;
  readonly #events: TranscriptEvents | null;
  #isDispatched = false;
  #waitedMs = 0;

  constructor(context: AudioContext, received: ReceivedTranscription) {
    const { request, reply, wanted } = received;
    this.#context = context;
    this.#received = received;
    this.#arrivedMs = context.now();
    this.#events = wanted.isStream ? new TranscriptEvents(request, reply) : null;
  }

  /**
   * Schedules the request. From now on this object frees the body.
   *
   * @throws invalid_request if no worker of the model can do it; the body is the caller's then
   */
  start(): void {
    const { request, reply, body, wanted } = this.#received;
    const { scheduler } = this.#context.audio;
    const need = this.#need();
    const refusal = scheduler.refusal(need);
    if (refusal !== null) throw refused(wanted, refusal);
    const job = this.#job(need);
    body.evictable(() => scheduler.abandon(job, 'evicted'));
    whenClosed(reply.raw, () => scheduler.abandon(job, 'client_closed'));
    // The queue counts the body from here on.
    request.bodyPlace?.release();
    scheduler.submit(job, this);
    if (reply.raw.destroyed || reply.raw.closed) scheduler.abandon(job, 'client_closed');
  }

  onDispatched(): void {
    this.#isDispatched = true;
    this.#waitedMs = this.#context.now() - this.#arrivedMs;
    this.#received.body.evictable(null);
    announceDispatch(this.#received);
  }

  onDelta(text: string): void {
    this.#events?.begin(this.#waitedMs);
    this.#events?.delta(text);
  }

  onAudio(): void {
    throw new Error('a recording is not answered with audio');
  }

  onSettled(end: AudioJobEnd): void {
    const { reply, body } = this.#received;
    body.release();
    try {
      if (end.kind === 'transcript') this.#answer(end.transcription, end);
      else if (end.kind === 'fault') this.#answerFault(end);
    } catch (error) {
      if (reply.sent) reply.raw.destroy();
      else reply.send(error);
    }
  }

  #answer(transcription: Transcription, { queueMs, workerMs }: AudioJobEnd): void {
    const { reply, request, wanted } = this.#received;
    const { postProcess } = this.#context.audio;
    traceEnd(request, { end: null, fault: null });
    const { model, format, isPostProcessed } = wanted;
    const shown = isPostProcessed ? postProcess(transcription, model) : transcription;
    if (this.#events !== null) {
      this.#events.begin(queueMs);
      this.#events.done(shown);
      return;
    }
    this.#setTiming({ queueMs, workerMs });
    const body = transcriptionBody(shown, wanted);
    if (format === 'json' || format === 'verbose_json') reply.type(JSON_TYPE).send(body);
    else reply.type('text/plain; charset=utf-8').send(body['text']);
  }

  #answerFault(end: FaultEnd): void {
    const { request, reply, band, wanted } = this.#received;
    const events = this.#events?.hasBegun === true ? this.#events : null;
    const faults = new AudioFaults(this.#context, { request, reply, band, model: wanted.model });
    faults.answer(end, events);
  }

  #setTiming({ queueMs, workerMs }: Pick<AudioJobEnd, 'queueMs' | 'workerMs'>): void {
    const queue = `queue;dur=${Math.round(queueMs)}`;
    const timing = this.#isDispatched ? `${queue}, worker;dur=${Math.round(workerMs)}` : queue;
    this.#received.reply.header('server-timing', timing);
  }

  #need(): AudioNeed {
    const { wanted, recording } = this.#received;
    return {
      ...{ model: wanted.model, task: wanted.task, language: wanted.language },
      contentType: recording.contentType,
      ...{ segments: wanted.needsSegments, words: wanted.hasWords },
      ...{ voice: '', speechFormat: '' },
    };
  }

  #job(need: AudioNeed): AudioJob {
    const { request, body, file, recording, wanted, band } = this.#received;
    const { tenant, id: requestId, isWorker } = request;
    return {
      ...{ requestId, tenant, band, need },
      priority: priorityOf(request, isWorker),
      work: {
        kind: 'file',
        options: {
          ...{ requestId, model: wanted.model, task: WIRE_TASKS[wanted.task] },
          ...{ language: wanted.language, prompt: wanted.prompt, temperature: wanted.temperature },
          wantSegments: wanted.hasSegments || wanted.needsSegments,
          wantWords: wanted.hasWords,
          ...(wanted.isStream ? this.#deltas(wanted.model) : NO_DELTAS),
          ...{ filename: recording.filename, contentType: recording.contentType },
          ...{ size: recording.bytes, durationS: recording.durationSec ?? 0 },
        },
        audio: body.range(file.offset, file.length),
      },
      cost: recordingCost(recording),
      bytes: body.memoryBytes,
      durationSec: longestDurationSec(recording),
      deadlineMs: this.#arrivedMs + waitLimitMs(request),
      metadata: traceOf(request),
    };
  }

  #deltas(model: string): { readonly wantDeltas: boolean } {
    return { wantDeltas: this.#context.audio.scheduler.sendsDeltas(model) };
  }
}

/** Subtitles need segments, which their clients do not ask for by name. */
function refused(
  { format }: TranscriptionRequest,
  { param, message }: { readonly param: string; readonly message: string },
): NightshiftError {
  const isFormat = param === 'timestamp_granularities' && format !== 'verbose_json';
  return new NightshiftError('invalid_request', message, {
    param: isFormat ? 'response_format' : param,
    apiCode: 'invalid_value',
  });
}
