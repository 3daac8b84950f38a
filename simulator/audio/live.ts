import { createHash } from 'node:crypto';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type {
  WireAudioFrame,
  WireStreamOptions,
  WireTranscriptEvent,
} from '../../proto/audio-messages';
import { WordSequence } from '../words';
import type { RecordingContext } from './recordings';

type StreamRpc = ServerDuplexStream<WireAudioFrame, Partial<WireTranscriptEvent>>;

/** Peaks above this share of full scale count as speech. */
const LOUD = 0.02;
/** A word is heard in each part of so many milliseconds. */
const MS_PER_WORD = 400;
const DEFAULT_SILENCE_MS = 500;

/** Transcribes live audio: words by the bytes of each turn, turns by commits or by silence. */
export function answerStream(rpc: StreamRpc, { calls, settings }: RecordingContext): void {
  let live: LiveStream | null = null;
  let end: (() => void) | null = null;
  let isComplete = false;
  rpc.on('data', (frame: WireAudioFrame) => {
    if (frame.options !== undefined && frame.options !== null) {
      const call = calls.take('stream', frame.options.sessionId, rpc);
      if (call === null) return;
      end = call.end;
      live = new LiveStream(frame.options, (event) => {
        if (call.isOpen && !settings().hang) rpc.write(event);
      });
    }
    live?.take(frame);
    isComplete ||= frame.last === true;
  });
  rpc.on('end', () => {
    // An aborted call emits `end` too, and then `cancelled`.
    if (isComplete) end?.();
    rpc.end();
  });
}

/** The turns of one live stream. */
class LiveStream {
  readonly #options: WireStreamOptions;
  readonly #send: (event: Partial<WireTranscriptEvent>) => void;
  /** Position in the session, ms. */
  #atMs: number;
  #turn = 0;
  #turnStartMs: number;
  #turnBytes: Buffer[] = [];
  #isSpeaking = false;
  #silentMs = 0;
  #words = 0;

  constructor(options: WireStreamOptions, send: (event: Partial<WireTranscriptEvent>) => void) {
    this.#options = options;
    this.#send = send;
    this.#atMs = options.startMs;
    this.#turnStartMs = options.startMs;
  }

  take({ audio, commit, last }: WireAudioFrame): void {
    if (audio !== undefined && audio.length > 0) this.#hear(audio);
    if (commit === true || (last === true && this.#turnBytes.length > 0)) this.#finish();
  }

  #hear(audio: Buffer): void {
    const { serverVad, silenceMs } = this.#options;
    const ms = this.#durationMs(audio);
    const isLoud = this.#isLoud(audio);
    if (serverVad && isLoud && !this.#isSpeaking) this.#startTurn();
    this.#atMs += ms;
    this.#silentMs = isLoud ? 0 : this.#silentMs + ms;
    if (serverVad && !this.#isSpeaking) return;
    this.#turnBytes.push(audio);
    this.#sendPartial();
    const limitMs = silenceMs > 0 ? silenceMs : DEFAULT_SILENCE_MS;
    if (serverVad && this.#silentMs >= limitMs) {
      this.#send({ kind: 'SPEECH_STOPPED', endMs: Math.round(this.#atMs) });
      this.#finish();
    }
  }

  #startTurn(): void {
    this.#isSpeaking = true;
    this.#turnStartMs = this.#atMs;
    this.#send({ kind: 'SPEECH_STARTED', startMs: Math.round(this.#atMs) });
  }

  #sendPartial(): void {
    const words = Math.floor((this.#atMs - this.#turnStartMs) / MS_PER_WORD);
    if (!this.#options.wantPartials || words <= this.#words) return;
    this.#words = words;
    const text = this.#text(words);
    const stableChars = this.#text(Math.max(0, words - 1)).length;
    this.#send({ ...this.#place(), kind: 'PARTIAL', text, stableChars });
  }

  #finish(): void {
    const words = Math.floor((this.#atMs - this.#turnStartMs) / MS_PER_WORD);
    const seconds = (this.#atMs - this.#turnStartMs) / 1_000;
    if (words > 0) {
      this.#send({ ...this.#place(), kind: 'FINAL', text: this.#text(words), confidence: 0.9 });
    }
    const usage = { audioSeconds: seconds, inputTokens: 0, outputTokens: 0 };
    this.#send({ ...this.#place(), kind: 'ITEM_DONE', usage });
    this.#turn++;
    this.#turnStartMs = this.#atMs;
    this.#turnBytes = [];
    this.#isSpeaking = false;
    this.#words = 0;
    this.#silentMs = 0;
  }

  #place(): Partial<WireTranscriptEvent> {
    return {
      segmentId: this.#turn,
      startMs: Math.round(this.#turnStartMs),
      endMs: Math.round(this.#atMs),
      language: this.#options.language || 'en',
    };
  }

  /** Words of a turn depend on its first bytes, so that a text only ever grows. */
  #text(words: number): string {
    const first = this.#turnBytes[0] ?? Buffer.alloc(0);
    const seed = createHash('sha256').update(first).digest().readUInt32LE(0);
    return words === 0 ? '' : new WordSequence(seed).take(words);
  }

  #durationMs(audio: Buffer): number {
    const { encoding, sampleRateHz } = this.#options;
    const samples = encoding === 'pcm16' ? audio.length / 2 : audio.length;
    return (1_000 * samples) / (sampleRateHz > 0 ? sampleRateHz : 16_000);
  }

  #isLoud(audio: Buffer): boolean {
    // µ-law and A-law have silence at both ends of their range; any other byte counts as loud.
    if (this.#options.encoding !== 'pcm16') return audio.some((byte) => (byte & 0x7f) < 0x60);
    for (let at = 0; at + 1 < audio.length; at += 2) {
      if (Math.abs(audio.readInt16LE(at)) > LOUD * 32_768) return true;
    }
    return false;
  }
}
