import { isNightshiftError, NightshiftError } from '../../errors';
import { AudioLog, type LogFrame } from './audio-log';
import { type ClientMessage, readClientMessage } from './client-message';
import { ItemSequence } from './item-sequence';
import type { RealtimeError, ServerEvent } from './server-event';
import {
  bytesPerMs,
  bytesPerSample,
  DEFAULT_SETTINGS,
  DEFAULT_VAD,
  type ServerVad,
  sessionObject,
  type SessionSettings,
  updatedSettings,
} from './session-settings';
import { realtimeUsage, type WorkerEvent } from './worker-event';

/** What a session asks of the gateway. */
export interface SessionParts {
  readonly id: string;
  readonly expiresAtSec: number;
  /** The model of the address; null if it names none. */
  readonly model: string | null;
  /** Audio that is kept for another worker, ms. */
  readonly resumeBufferMs: number;
  newItemId(): string;
  /** Bytes of a base64 text; null if it is none. */
  decode(base64: string): Uint8Array | null;
  /** Whether a model can end turns by itself. */
  hasVad(model: string): boolean;
  /** @throws NightshiftError if no worker can transcribe with these settings */
  check(settings: SessionSettings): void;
}

/** The settings of a stream at a worker. */
export interface StreamSettings {
  readonly settings: SessionSettings;
  readonly vad: ServerVad | null;
  /** Where its audio begins in the session, ms. */
  readonly startMs: number;
}

/** The frame that tells the worker of another language or prompt. */
export const SETTINGS_FRAME = { settings: true } as const;

/** How many lost workers a session outlasts. */
const MAX_RESUMES = 3;

/**
 * A live transcription: messages of the client and events of a worker go in, events for the client come out. It decides
 * everything but when, and does no I/O: the gateway takes the frames that it has for a worker, and opens a stream
 * whenever there are some (docs/design/realtime.md#the-session).
 */
export class RealtimeSession {
  readonly #parts: SessionParts;
  readonly #items: ItemSequence;
  #settings: SessionSettings;
  /** Created with the first audio, whose format is final. */
  #log: AudioLog | null = null;
  /** Whether a stream got audio that is neither done nor cleared. */
  #hasStream = false;
  /** Items that the stream must finish before it is replaced, after a clear; null if it need not be. */
  #drains: number | null = null;
  #resumes = 0;
  /** Whether the stream began with another language or prompt. */
  #hasNews = false;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#items = new ItemSequence(() => parts.newItemId());
    this.#settings = { ...DEFAULT_SETTINGS, model: parts.model };
  }

  /** Null until the client names one. */
  get model(): string | null {
    return this.#settings.model;
  }

  /** The first event. */
  created(): ServerEvent {
    return { type: 'session.created', session: this.#view() };
  }

  /** Whether there is something to be sent to a worker. */
  get hasFrames(): boolean {
    return this.#log?.hasNext ?? false;
  }

  /** Whether the stream must be cancelled: a new one transcribes what comes. */
  get isStreamStale(): boolean {
    return this.#drains === 0;
  }

  /** Whether a transcript is due, or audio has arrived since the last one. */
  get hasOpenWork(): boolean {
    return this.#items.waiting > 0 || (this.#log?.end ?? 0) > this.#items.growingFrom;
  }

  /** What a text message of the client leads to. */
  onText(text: string): ServerEvent[] {
    const read = readClientMessage(text);
    try {
      if ('fault' in read) throw read.fault;
      return this.#onMessage(read.message);
    } catch (error) {
      if (!isNightshiftError(error)) throw error;
      return [errorEvent(error, read.eventId)];
    }
  }

  /** What a binary message leads to: raw audio. */
  onAudio(bytes: Uint8Array): ServerEvent[] {
    try {
      this.#append(bytes);
      return [];
    } catch (error) {
      if (!isNightshiftError(error)) throw error;
      return [errorEvent(error, null)];
    }
  }

  /** With what a stream begins, or goes on after {@link SETTINGS_FRAME}. */
  get streamSettings(): StreamSettings {
    const startMs = Math.floor(this.#msOf(this.#log?.start ?? 0));
    return { settings: this.#settings, vad: this.#vad, startMs };
  }

  /** A stream was opened with {@link streamSettings}. It takes the frames, those that are kept first. */
  onStreamOpened(): void {
    this.#hasStream = true;
    this.#hasNews = false;
  }

  /** The next frame for the worker; null if there is none yet. */
  nextFrame(): LogFrame | typeof SETTINGS_FRAME | null {
    if (!this.hasFrames || !this.#hasNews) return this.#log?.next() ?? null;
    this.#hasNews = false;
    return SETTINGS_FRAME;
  }

  /** What an event of the worker leads to. */
  onWorkerEvent(event: WorkerEvent): ServerEvent[] {
    switch (event.kind) {
      case 'SPEECH_STARTED':
        return this.#vad === null ? [] : this.#items.speechStarted(event.startMs);
      case 'PARTIAL':
        return this.#onPartial(event);
      case 'FINAL':
        this.#log?.forget(this.#byteOf(event.endMs));
        return this.#items.final(event.text);
      case 'SPEECH_STOPPED':
        return this.#vad === null ? [] : this.#onSpeechStopped(event);
      case 'ITEM_DONE':
        return this.#onItemDone(event);
      default:
        return [];
    }
  }

  /**
   * The stream is gone without having been cancelled. What is kept is sent again to the next one. Returns whether there
   * may be a next one.
   */
  onStreamLost(): boolean {
    if (this.hasOpenWork) this.#resumes++;
    this.onStreamReplaced();
    return this.#resumes <= MAX_RESUMES;
  }

  /** The stream was cancelled because it was stale. */
  onStreamReplaced(): void {
    this.#hasStream = false;
    this.#drains = null;
    this.#log?.rewind();
  }

  /** Nothing will be transcribed any more. */
  fail(code: string, message: string): ServerEvent[] {
    const error: RealtimeError = { type: 'server_error', code, message, param: null };
    const failed = this.#items.fail(error, this.#log?.end ?? 0);
    return [...failed, { type: 'error', error: { ...error, event_id: null } }];
  }

  #onMessage(message: ClientMessage): ServerEvent[] {
    switch (message.type) {
      case 'session.update':
        this.#update(message.session);
        return [{ type: 'session.updated', session: this.#view() }];
      case 'input_audio_buffer.append':
        this.#append(this.#decoded(message.audio));
        return [];
      case 'input_audio_buffer.commit':
        return [this.#commit()];
      case 'input_audio_buffer.clear':
        this.#clear();
        return [{ type: 'input_audio_buffer.cleared' }];
    }
  }

  #update(session: unknown): void {
    const before = this.#settings;
    const next = updatedSettings(session, before);
    if (this.#log !== null && this.#fixedPart(next) !== this.#fixedPart(before)) {
      const message =
        'After the first audio, only the language and the prompt can change. Open another session.';
      throw invalid(message, 'session');
    }
    if (next.model !== null) this.#parts.check(next);
    this.#settings = next;
    this.#hasNews = next.language !== before.language || next.prompt !== before.prompt;
  }

  /** What cannot change after the first audio. */
  #fixedPart({ format, model, partials, turnDetection }: SessionSettings): string {
    return JSON.stringify([format, model, partials, this.#vadOf({ turnDetection, model })]);
  }

  #decoded(base64: string): Uint8Array {
    const bytes = this.#parts.decode(base64);
    if (bytes === null) throw invalid('The audio is not valid base64.', 'audio');
    return bytes;
  }

  #append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const { format, model } = this.#settings;
    if (model === null) {
      const param = 'session.audio.input.transcription.model';
      throw invalid('Name a model with session.update before you send audio.', param);
    }
    if (bytes.length % bytesPerSample(format.type) !== 0) {
      const message = `The audio has ${bytes.length} bytes, but a sample of audio/pcm has 2. Send whole samples.`;
      throw invalid(message, 'audio');
    }
    this.#log ??= new AudioLog(Math.ceil(this.#parts.resumeBufferMs * bytesPerMs(format)));
    this.#log.append(bytes);
  }

  #commit(): ServerEvent {
    const log = this.#log;
    if (log === null || log.end === this.#items.growingFrom) {
      const message = 'There is no audio to commit: it is empty since the last commit.';
      const apiCode = 'input_audio_buffer_commit_empty';
      throw new NightshiftError('invalid_request', message, { apiCode });
    }
    log.commit();
    return this.#items.commit(log.end);
  }

  #clear(): void {
    const log = this.#log;
    if (log === null || log.end === this.#items.growingFrom) return;
    log.clear();
    this.#items.clear(log.end);
    if (this.#hasStream) this.#drains ??= this.#items.waiting;
    else log.rewind();
  }

  #onPartial({ text, stableChars }: WorkerEvent): ServerEvent[] {
    const deltas = this.#items.partial(text, stableChars);
    return this.#settings.partials ? [...deltas, this.#items.hypothesis(text)] : deltas;
  }

  #onSpeechStopped({ endMs }: WorkerEvent): ServerEvent[] {
    const { waiting, growingFrom } = this.#items;
    const end = Math.max(growingFrom, this.#byteOf(endMs));
    if (waiting === 0) this.#log?.commitSent(end);
    return this.#items.speechStopped(endMs, end);
  }

  #onItemDone({ usage }: WorkerEvent): ServerEvent[] {
    const events: ServerEvent[] = [];
    if (this.#items.waiting === 0) {
      // A turn whose end was not announced; or the answer to a commit of a turn that the worker had ended already.
      if (this.#vad === null || !this.#items.hasSpeech) return [];
      events.push(this.#items.commit(this.#log?.end ?? 0));
      this.#log?.commitSent(this.#log.end);
    }
    this.#log?.commitDone();
    if (this.#drains !== null) this.#drains = Math.max(0, this.#drains - 1);
    return [...events, ...this.#items.done((bytes) => realtimeUsage(usage, this.#msOf(bytes)))];
  }

  get #vad(): ServerVad | null {
    return this.#vadOf(this.#settings);
  }

  #vadOf({
    turnDetection,
    model,
  }: Pick<SessionSettings, 'turnDetection' | 'model'>): ServerVad | null {
    if (turnDetection !== undefined) return turnDetection;
    return model === null || this.#parts.hasVad(model) ? DEFAULT_VAD : null;
  }

  #view(): object {
    const { id, expiresAtSec } = this.#parts;
    return sessionObject(this.#settings, { id, expiresAtSec, vad: this.#vad });
  }

  #msOf(bytes: number): number {
    return bytes / bytesPerMs(this.#settings.format);
  }

  /** Where a time of the worker lies in the audio: at the beginning of a sample, and not in the future. */
  #byteOf(ms: number): number {
    const { format } = this.#settings;
    const at = Math.floor((ms * format.rate) / 1_000) * bytesPerSample(format.type);
    return Math.min(at, this.#log?.end ?? 0);
  }
}

function invalid(message: string, param: string): NightshiftError {
  return new NightshiftError('invalid_request', message, { param, apiCode: 'invalid_value' });
}

function errorEvent(
  { message, param, apiCode, code }: NightshiftError,
  eventId: string | null,
): ServerEvent {
  const type = 'invalid_request_error';
  return {
    type: 'error',
    error: { type, code: apiCode ?? code, message, param, event_id: eventId },
  };
}
