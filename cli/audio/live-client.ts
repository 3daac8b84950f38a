import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { NightshiftError } from '../../core/errors';
import type { LiveAudio } from './live-audio';

/** An event of the gateway. */
export type LiveEvent = Readonly<Record<string, unknown>> & { readonly type: string };

/** How live audio is transcribed. */
export interface LiveOptions {
  /** Base URL of the gateway, with `/v1`. */
  readonly url: string;
  readonly model: string;
  readonly language: string | null;
  readonly apiKey: string | null;
  /** Times the speed of the audio; 0: as fast as the gateway takes it. */
  readonly speed: number;
  readonly signal: AbortSignal;
  onEvent(event: LiveEvent): void;
}

/** Audio is sent in pieces of this duration. */
const PIECE_MS = 100;
/** What may wait to be sent before the next piece is read, bytes. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
const TRANSCRIPTION = 'conversation.item.input_audio_transcription';

/**
 * Sends live audio to the gateway at its own speed and waits for the transcripts of all of it. @throws unavailable if no
 * gateway answers, invalid_request if it refuses the session
 */
export async function transcribeLive(audio: LiveAudio, options: LiveOptions): Promise<void> {
  const socket = connect(options);
  const session = new LiveResult(socket, options.onEvent);
  const onAbort = (): void => socket.terminate();
  options.signal.addEventListener('abort', onAbort, { once: true });
  try {
    await session.opened;
    const { language } = options;
    const transcription = { model: options.model, ...(language === null ? {} : { language }) };
    const input = { format: audio.format, transcription };
    send(socket, { type: 'session.update', session: { type: 'transcription', audio: { input } } });
    await Promise.race([sendAudio(socket, audio, options), session.ended]);
    send(socket, { type: 'input_audio_buffer.commit' });
    // Nothing is left to clear. The answer says that the commit was taken, also if there was nothing to commit.
    send(socket, { type: 'input_audio_buffer.clear' });
    await session.ended;
  } finally {
    options.signal.removeEventListener('abort', onAbort);
    socket.close();
  }
}

function connect({ url, model, apiKey }: LiveOptions): WebSocket {
  const address = `${url.replace(/^http/, 'ws')}/realtime?model=${encodeURIComponent(model)}`;
  const headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  return new WebSocket(address, { headers, perMessageDeflate: false });
}

function send(socket: WebSocket, event: object): void {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(event));
}

async function sendAudio(
  socket: WebSocket,
  { pieces, bytesPerSec, sampleBytes }: LiveAudio,
  { speed, signal }: LiveOptions,
): Promise<void> {
  const beganAtMs = performance.now();
  const pieceBytes =
    Math.max(1, Math.floor((bytesPerSec * PIECE_MS) / 1_000 / sampleBytes)) * sampleBytes;
  let sent = 0;
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    while (rest.length >= pieceBytes) {
      socket.send(rest.subarray(0, pieceBytes));
      sent += pieceBytes;
      rest = rest.subarray(pieceBytes);
      const dueAtMs = speed === 0 ? 0 : beganAtMs + (sent * 1_000) / bytesPerSec / speed;
      await pause(dueAtMs - performance.now(), signal);
      while (socket.bufferedAmount > MAX_BUFFERED_BYTES) await pause(10, signal);
      if (socket.readyState !== WebSocket.OPEN) return;
    }
  }
  const whole = rest.length - (rest.length % sampleBytes);
  if (whole > 0) socket.send(rest.subarray(0, whole));
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** What has become of a session. */
class LiveResult {
  /** Rejects if the gateway cannot be reached, or refuses. */
  readonly opened: Promise<void>;
  /** Resolves when no transcript is due after a clear; rejects if the session ends before. */
  readonly ended: Promise<void>;
  readonly #onEvent: (event: LiveEvent) => void;
  #due = 0;
  #isCleared = false;
  #fault: string | null = null;
  #resolve: () => void = () => undefined;

  constructor(socket: WebSocket, onEvent: (event: LiveEvent) => void) {
    this.#onEvent = onEvent;
    this.opened = new Promise((resolve, reject) => {
      socket.once('open', () => resolve());
      socket.once('unexpected-response', (_, response) => {
        response.resume();
        reject(wrong(`The gateway refused the session with status ${response.statusCode ?? 0}.`));
        socket.terminate();
      });
      socket.once('error', (error) =>
        reject(new NightshiftError('unavailable', noGateway(socket.url, error))),
      );
    });
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      socket.once('close', (code) => {
        reject(wrong(this.#fault ?? `The gateway ended the session (code ${code}).`));
      });
    });
    this.ended.catch(() => undefined);
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer) => this.#take(JSON.parse(data.toString()) as LiveEvent));
  }

  #take(event: LiveEvent): void {
    this.#onEvent(event);
    const { type } = event;
    if (type === 'input_audio_buffer.committed') this.#due++;
    else if (type === `${TRANSCRIPTION}.completed` || type === `${TRANSCRIPTION}.failed`) {
      this.#due--;
    } else if (type === 'input_audio_buffer.cleared') this.#isCleared = true;
    else if (type === 'error') this.#onError(event);
    if (this.#isCleared && this.#due === 0) this.#resolve();
  }

  #onError({ error }: LiveEvent): void {
    const { code, message } = error as { readonly code?: string; readonly message: string };
    // The worker may have ended the last turn by itself.
    if (code !== 'input_audio_buffer_commit_empty') this.#fault ??= message;
  }
}

function noGateway(url: string, error: Error): string {
  return `No gateway answers at ${url.split('?', 1)[0]} (${error.message}). Start one, or name it with --gateway-url.`;
}

function wrong(message: string): NightshiftError {
  return new NightshiftError('invalid_request', message);
}
