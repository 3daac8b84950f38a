import { randomUUID } from 'node:crypto';
import type { WebSocket } from 'ws';
import {
  RealtimeSession,
  SETTINGS_FRAME,
  type StreamSettings,
} from '../../../core/audio/realtime/realtime-session';
import type { ServerEvent } from '../../../core/audio/realtime/server-event';
import type { AudioFormat } from '../../../core/audio/realtime/session-settings';
import type { CallFailure } from '../../../inference/audio/audio-calls';
import { StreamHandle } from '../../../inference/audio/stream-handle';
import type { AudioConfig } from '../../../platform/config-audio';
import type { Logger } from '../../../platform/logger';
import { within } from '../../../platform/within';
import type { WireStreamOptions } from '../../../proto/audio-messages';
import { ClientSocket } from './client-socket';
import { decodeBase64 } from './decode-base64';
import {
  canServe,
  type RealtimeWorker,
  type StreamLease,
  type StreamNeed,
  type StreamTable,
} from './stream-table';

/** What a {@link LiveSession} is made of. */
export interface LiveSessionParts {
  readonly socket: WebSocket;
  readonly table: StreamTable;
  /** The model of the address, and a stream for it; null if it names none. */
  readonly first: { readonly model: string; readonly lease: StreamLease } | null;
  readonly limits: AudioConfig['stream'];
  /** The headers of the trace, and `x-request-id`. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly logger: Logger;
  onEnded(): void;
}

/** How long a session waits for another worker, and how often it looks for one. */
const RESUME_WAIT_MS = 5_000;
const LOOK_MS = 100;
/** How long a worker may take to end a stream of which nothing is due. */
const FINISH_MS = 1_000;

const ENCODINGS: Readonly<Record<AudioFormat['type'], string>> = {
  'audio/pcm': 'pcm16',
  'audio/pcmu': 'mulaw',
  'audio/pcma': 'alaw',
};

/**
 * A live session: a client, the state of its transcription, and the stream at a worker that it has at the moment
 * (docs/design/realtime.md).
 */
export class LiveSession {
  readonly id = `sess_${randomUUID().replaceAll('-', '')}`;
  readonly #parts: LiveSessionParts;
  readonly #session: RealtimeSession;
  readonly #client: ClientSocket;
  readonly #timers: NodeJS.Timeout[];
  #lease: StreamLease | null;
  #stream: StreamHandle | null = null;
  /** How often a worker was looked for in vain, and what the client gets in the end; null if none is looked for. */
  #search: { looks: number; readonly code: 'no_capacity' | 'backend_lost' } | null = null;
  #hadStream = false;
  #lookTimer: NodeJS.Timeout | undefined;
  #isOver = false;
  /** Resolves when the client has taken what it was sent. */
  #unclogged: (() => void) | null = null;

  constructor(parts: LiveSessionParts) {
    const { socket, table, first, limits } = parts;
    this.#parts = parts;
    this.#lease = first?.lease ?? null;
    this.#session = new RealtimeSession({
      id: this.id,
      expiresAtSec: Math.floor((Date.now() + limits.max_session) / 1_000),
      model: first?.model ?? null,
      resumeBufferMs: limits.resume_buffer,
      newItemId: () => `item_${randomUUID().replaceAll('-', '')}`,
      decode: decodeBase64,
      hasVad: (model) => table.hasVad(model),
      check: (settings) => table.check(settings),
    });
    this.#client = new ClientSocket(socket, {
      onText: (text) => this.#onMessage(() => this.#session.onText(text)),
      onAudio: (bytes) => this.#onMessage(() => this.#session.onAudio(bytes)),
      onDrain: () => this.#unclogged?.(),
      onClosed: () => this.#onGone(),
    });
    this.#timers = [
      setTimeout(() => this.#onIdle(), limits.idle_timeout).unref(),
      setTimeout(
        () => this.#expire('has reached its maximum duration'),
        limits.max_session,
      ).unref(),
    ];
    this.#client.send([this.#session.created()]);
  }

  /** Whether a transcript is due. */
  get hasOpenWork(): boolean {
    return this.#session.hasOpenWork;
  }

  /** The gateway shuts down. Transcripts that are due fail. */
  shutDown(): void {
    this.#endOrderly('shutting_down', 'This server is shutting down.', 1001);
  }

  #onMessage(read: () => readonly ServerEvent[]): void {
    if (this.#isOver) return;
    this.#timers[0]?.refresh();
    this.#guard(() => {
      this.#client.send(read());
      if (this.#holdsStream()) this.#advance();
    });
  }

  /** Takes a stream for the model as soon as it is known: a client that may send audio has a place for it. */
  #holdsStream(): boolean {
    const { model } = this.#session;
    if (model === null || this.#hadStream || this.#search !== null) return true;
    const need = { model, language: '', rate: null, vad: false };
    if (this.#lease !== null && canServe(this.#lease.worker, need)) return true;
    this.#lease?.release();
    this.#lease = this.#parts.table.take(need);
    if (this.#lease === null) this.#fail('no_capacity');
    return this.#lease !== null;
  }

  /** Does what the session needs now: replaces, opens and fills the stream. */
  #advance(): void {
    if (this.#isOver) return;
    if (this.#session.isStreamStale) this.#replaceStream();
    if (this.#session.hasFrames && this.#stream === null && this.#search === null) {
      this.#open(null, this.#hadStream ? 'backend_lost' : 'no_capacity');
    }
    if (this.#stream !== null) this.#fill(this.#stream);
    this.#client.setRoom(!this.#session.hasFrames);
  }

  #fill(stream: StreamHandle): void {
    while (stream.isWritable) {
      const frame = this.#session.nextFrame();
      if (frame === null) return;
      if (frame === SETTINGS_FRAME) stream.configure(this.#options());
      else if ('commit' in frame) stream.commit();
      else if ('audio' in frame) stream.send(bufferOf(frame.audio));
    }
  }

  /** Opens a stream at the worker of the lease, or at another one but `avoid`; looks for one later if there is none. */
  #open(avoid: RealtimeWorker | null, code: 'no_capacity' | 'backend_lost'): void {
    const { model } = this.#session;
    if (model === null) return;
    const need = this.#need(model);
    if (this.#lease === null || !canServe(this.#lease.worker, need)) {
      this.#lease?.release();
      this.#lease = this.#parts.table.take(need, avoid);
    }
    if (this.#lease === null) return this.#look(code);
    this.#search = null;
    this.#hadStream = true;
    const { worker } = this.#lease;
    const stream = StreamHandle.open(worker, this.#options(), this.#parts.metadata);
    this.#stream = stream;
    this.#session.onStreamOpened();
    stream.onDrain(() => this.#guard(() => this.#advance()));
    this.#read(stream, worker).catch((error: unknown) => this.#crash(error));
  }

  async #read(stream: StreamHandle, worker: RealtimeWorker): Promise<void> {
    for await (const event of stream.events()) {
      // Of a stream that was given up, the rest is read so that it ends.
      if (this.#stream !== stream) continue;
      this.#client.send(this.#session.onWorkerEvent(event));
      this.#advance();
      if (this.#client.isClogged) await new Promise<void>((resolve) => (this.#unclogged = resolve));
    }
    const end = await stream.ended;
    if (this.#stream === stream) this.#onStreamEnd(end.ok ? EARLY_END : end.failure, worker);
  }

  #onStreamEnd(failure: CallFailure, worker: RealtimeWorker): void {
    this.#stream = null;
    this.#lease?.release();
    this.#lease = null;
    const { kind, message: reason } = failure;
    const where = { session: this.id, worker: worker.address };
    this.#parts.logger.warn({ ...where, kind, reason }, 'the stream of a live session ended');
    if (kind === 'failed') return this.#fail('backend_failed');
    if (kind === 'invalid' || kind === 'not_found') return this.#fail('invalid_value', reason);
    if (kind === 'exhausted') this.#parts.table.markFull(worker);
    if (!this.#session.onStreamLost()) return this.#fail('backend_lost');
    if (this.#session.hasFrames)
      this.#open(worker, kind === 'exhausted' ? 'no_capacity' : 'backend_lost');
    this.#advance();
  }

  /** Looks for a worker again after a while; the lost one will do then. */
  #look(code: 'no_capacity' | 'backend_lost'): void {
    const search = (this.#search ??= { looks: 0, code });
    if (search.looks++ * LOOK_MS >= RESUME_WAIT_MS) return this.#fail(search.code);
    const again = (): void => {
      if (this.#isOver) return;
      this.#open(null, search.code);
      this.#advance();
    };
    this.#lookTimer = setTimeout(() => this.#guard(again), LOOK_MS).unref();
  }

  #replaceStream(): void {
    const stream = this.#stream;
    this.#stream = null;
    this.#session.onStreamReplaced();
    void stream?.cancel();
  }

  #need(model: string): StreamNeed {
    const { settings, vad } = this.#session.streamSettings;
    return { model, language: settings.language, rate: settings.format.rate, vad: vad !== null };
  }

  #options(): WireStreamOptions {
    return optionsOf(this.id, this.#session.streamSettings);
  }

  #onIdle(): void {
    // A client that is not read cannot show that it is there.
    if (this.#client.isReading) this.#expire('was idle for too long');
    else this.#timers[0]?.refresh();
  }

  #expire(what: string): void {
    const message = `The session ${what}. Open another one.`;
    this.#endOrderly('session_expired', message, 1000);
  }

  #endOrderly(code: string, message: string, closeCode: number): void {
    if (this.#isOver) return;
    const isIdle = !this.hasOpenWork;
    this.#client.send(this.#session.fail(code, message));
    this.#end(isIdle ? finish : (stream) => stream.cancel());
    this.#client.close(closeCode, code);
  }

  #fail(code: keyof typeof FAILURES, reason?: string): void {
    if (this.#isOver) return;
    const { message, closeCode } = FAILURES[code];
    this.#client.send(this.#session.fail(code, reason ?? message));
    this.#end((stream) => stream.cancel());
    this.#client.close(closeCode, code);
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#crash(error);
    }
  }

  #crash(error: unknown): void {
    this.#parts.logger.error({ err: error, session: this.id }, 'live session failed');
    this.#fail('internal');
  }

  #onGone(): void {
    this.#end((stream) => stream.cancel());
    this.#parts.onEnded();
  }

  /** The stream of the worker is free when the call has ended. */
  #end(endStream: (stream: StreamHandle) => Promise<unknown>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    clearTimeout(this.#lookTimer);
    this.#unclogged?.();
    const [stream, lease] = [this.#stream, this.#lease];
    this.#stream = null;
    this.#lease = null;
    if (stream === null) lease?.release();
    else void endStream(stream).then(() => lease?.release());
  }
}

/** Ends a stream of which nothing is due, so that the worker need not stop anything. */
function finish(stream: StreamHandle): Promise<unknown> {
  stream.close();
  return within(FINISH_MS, stream.ended, () => stream.cancel());
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

function optionsOf(
  sessionId: string,
  { settings, vad, startMs }: StreamSettings,
): WireStreamOptions {
  const { model, language, prompt, format } = settings;
  return {
    ...{ sessionId, model: model ?? '', language, prompt, startMs },
    encoding: ENCODINGS[format.type],
    sampleRateHz: format.rate,
    serverVad: vad !== null,
    vadThreshold: vad?.threshold ?? 0,
    prefixMs: vad?.prefixMs ?? 0,
    silenceMs: vad?.silenceMs ?? 0,
    // Deltas are made of them, also for a client that does not want to see them.
    wantPartials: true,
    wantWords: false,
  };
}

const EARLY_END: CallFailure = { kind: 'lost', message: 'The worker ended the stream.' };

const FAILURES = {
  no_capacity: { message: 'No audio worker has a free stream. Please try again.', closeCode: 1013 },
  backend_lost: { message: 'The connection to the audio worker broke.', closeCode: 1011 },
  backend_failed: { message: 'The audio worker failed.', closeCode: 1011 },
  invalid_value: { message: 'The audio worker refused the audio.', closeCode: 1011 },
  internal: { message: 'The server had an error. Please try again.', closeCode: 1011 },
} as const;
