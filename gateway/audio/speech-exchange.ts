import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AudioNeed } from '../../core/audio/audio-need';
import { speechCost } from '../../core/audio/call-deadline';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import { NightshiftError } from '../../core/errors';
import { whenClosed } from '../../http/connections/exchanges';
import type { WireSpeechChunk, WireUsage } from '../../proto/audio-messages';
import { priorityOf, waitLimitMs } from '../requests/admission-rules';
import { announceDispatch } from '../requests/serve';
import { traceEnd } from '../requests/request-trace';
import { AudioFaults } from './audio-faults';
import type { AudioContext } from './audio-context';
import type { AudioJob, AudioJobEnd, AudioJobOwner } from './job';
import { SpeechAnswer } from './speech-answer';
import type { SpeechWanted } from './speech-request';
import { traceOf } from './trace-of';

/** A request for speech that an audio worker serves. */
export interface ReceivedSpeech {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: SpeechWanted;
  /** Bytes of its body. */
  readonly bytes: number;
}

/** One request for speech, from its body to the end of its answer. */
export class SpeechExchange implements AudioJobOwner {
  readonly #context: AudioContext;
  readonly #received: ReceivedSpeech;
  readonly #arrivedMs: number;
  readonly #answer: SpeechAnswer;
  readonly #band: Band;
  #waitedMs = 0;
  #audioSec = 0;
  #usage: WireUsage | null = null;

  constructor(context: AudioContext, received: ReceivedSpeech) {
    const { request, reply, wanted } = received;
    this.#context = context;
    this.#received = received;
    this.#arrivedMs = context.now();
    this.#answer = new SpeechAnswer(request, reply, wanted);
    this.#band = speechBand(context, request);
  }

  /** Schedules the request. @throws invalid_request if no worker of the model can do it */
  start(): void {
    const { reply } = this.#received;
    const { scheduler } = this.#context.audio;
    const need = this.#need();
    const refusal = scheduler.refusal(need);
    if (refusal !== null) {
      const { param, message } = refusal;
      throw new NightshiftError('invalid_request', message, { param, apiCode: 'invalid_value' });
    }
    const job = this.#job(need);
    whenClosed(reply.raw, () => scheduler.abandon(job, 'client_closed'));
    scheduler.submit(job, this);
    if (reply.raw.destroyed || reply.raw.closed) scheduler.abandon(job, 'client_closed');
  }

  onDispatched(): void {
    this.#waitedMs = this.#context.now() - this.#arrivedMs;
    announceDispatch(this.#received);
  }

  onDelta(): void {
    throw new Error('speech is not answered with text');
  }

  onAudio({ audio, durationS, usage }: WireSpeechChunk): void | Promise<void> {
    if (audio.length > 0 && !this.#answer.hasBegun) {
      this.#context.audio.onSpeechBegun(this.#context.now() - this.#arrivedMs);
    }
    this.#audioSec = Math.max(this.#audioSec, durationS);
    this.#usage = usage ?? this.#usage;
    return this.#answer.send(audio, this.#waitedMs);
  }

  onSettled(end: AudioJobEnd): void {
    const { request, reply } = this.#received;
    try {
      if (end.kind === 'fault') this.#fail(end);
      else {
        traceEnd(request, { end: null, fault: null });
        this.#answer.end(this.#usage, this.#audioSec);
      }
    } catch (error) {
      if (reply.sent) reply.raw.destroy();
      else reply.send(error);
    }
  }

  #fail(end: Extract<AudioJobEnd, { readonly kind: 'fault' }>): void {
    const { request, reply, wanted } = this.#received;
    const answer = this.#answer;
    const whose = { request, reply, band: this.#band, model: wanted.model };
    new AudioFaults(this.#context, whose).answer(end, answer.hasBegun ? answer : null);
  }

  #need(): AudioNeed {
    const { model, voice, format } = this.#received.wanted;
    return {
      ...{ model, task: 'speak', language: '', contentType: '', segments: false, words: false },
      ...{ voice, speechFormat: format },
    };
  }

  #job(need: AudioNeed): AudioJob {
    const { request, wanted, bytes } = this.#received;
    const { tenant, id: requestId, isWorker } = request;
    const { model, input, voice, format, speed, instructions } = wanted;
    return {
      ...{ requestId, tenant, band: this.#band, need, bytes },
      priority: priorityOf(request, isWorker),
      work: {
        kind: 'speech',
        request: { requestId, model, input, voice, format, speed, instructions, language: '' },
      },
      cost: speechCost(Array.from(input).length),
      durationSec: 0,
      deadlineMs: this.#arrivedMs + waitLimitMs(request),
      metadata: traceOf(request),
    };
  }
}

/** Speech keeps its priority whatever the highest band of its tenant is; lines of batches are sheddable. */
export function speechBand({ audio }: AudioContext, { isWorker }: FastifyRequest): Band {
  if (isWorker) return BAND.sheddable;
  return audio.settings.scheduler.speech_priority === 'REALTIME' ? BAND.critical : BAND.standard;
}
