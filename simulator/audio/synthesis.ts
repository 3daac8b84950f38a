import type { ServerWritableStream } from '@grpc/grpc-js';
import type { WireSpeechChunk, WireSpeechRequest } from '../../proto/audio-messages';
import type { RecordingContext } from './recordings';
import { SPEECH_RATE, speechDuration, speechHeader, tone } from './speech';

type SpeechRpc = ServerWritableStream<WireSpeechRequest, Partial<WireSpeechChunk>>;

/** A fifth of a second of samples in each piece. */
const PIECE_SAMPLES = SPEECH_RATE / 5;

/** Speaks a text as a tone, in pieces, no faster than they are read. */
export function answerSpeech(rpc: SpeechRpc, { calls, settings }: RecordingContext): void {
  const { requestId, input, speed, format } = rpc.request;
  const call = calls.take('speech', requestId, rpc);
  if (call === null) return;
  const durationS = speechDuration(input, speed);
  const samples = Math.round(durationS * SPEECH_RATE);
  let at = 0;
  const next = (): void => {
    while (call.isOpen && at < samples) {
      const to = Math.min(samples, at + PIECE_SAMPLES);
      const piece = tone(input, at, to);
      const audio = at === 0 ? Buffer.concat([speechHeader(format), piece]) : piece;
      at = to;
      if (!rpc.write({ audio, durationS: to / SPEECH_RATE })) {
        rpc.once('drain', next);
        return;
      }
    }
    if (!call.isOpen) return;
    const usage = { audioSeconds: durationS, inputTokens: 0, outputTokens: 0 };
    rpc.write({ audio: Buffer.alloc(0), durationS, usage });
    call.end();
    rpc.end();
  };
  const { base_ms: base, item_ms: perItem, audio_sec_ms: perSecond } = settings();
  call.after(base + perItem + perSecond * durationS, next);
}
