import type { WireFileOptions, WireSegment, WireTranscript } from '../../proto/audio-messages';
import { WordSequence } from '../words';

/** Simulated speech has this many words a second. */
const WORDS_PER_SEC = 2.5;
const MAX_WORDS = 2_000;
const WORDS_PER_SEGMENT = 8;
/** Bytes of a second of audio whose container does not state its duration: 16 kHz, 16 bit. */
const BYTES_PER_SEC = 32_000;

/** What is known of a recording when all of it has arrived. */
export interface Recording {
  readonly options: WireFileOptions;
  readonly bytes: number;
  /** SHA-256 of the bytes. */
  readonly hash: Buffer;
}

/** How long a recording is, s. */
export function durationOf({ options, bytes }: Pick<Recording, 'options' | 'bytes'>): number {
  return options.durationS > 0 ? options.durationS : bytes / BYTES_PER_SEC;
}

/**
 * The transcript of a recording: equal bytes give equal words at any time, and the first 12 characters of their SHA-256
 * are in it, so that a test can tell whose answer it is.
 */
export function transcriptOf(recording: Recording): WireTranscript {
  const { options, hash } = recording;
  const durationS = durationOf(recording);
  const count = Math.max(2, Math.min(MAX_WORDS, Math.round(durationS * WORDS_PER_SEC)));
  const spoken = new WordSequence(hash.readUInt32LE(0)).take(count).split(' ');
  const lead = options.task === 'TRANSLATE' ? ['simulated', 'translation'] : ['simulated'];
  const words = [...lead, hash.toString('hex').slice(0, 12), ...spoken];
  const perWord = durationS / words.length;
  const segments = segmentsOf(words, perWord);
  return {
    text: words.join(' '),
    language: options.task === 'TRANSLATE' ? 'en' : options.language || 'en',
    durationS,
    segments: options.wantSegments ? segments : [],
    words: options.wantWords
      ? words.map((text, i) => {
          return { text, startS: i * perWord, endS: (i + 1) * perWord, probability: 0.9 };
        })
      : [],
    usage: { audioSeconds: durationS, inputTokens: 0, outputTokens: 0 },
  };
}

/** The same text in pieces. */
export function deltasOf({ text }: Pick<WireTranscript, 'text'>): readonly string[] {
  return text.split(/(?<= )/);
}

function segmentsOf(words: readonly string[], perWord: number): WireSegment[] {
  const count = Math.ceil(words.length / WORDS_PER_SEGMENT);
  return Array.from({ length: count }, (_, id) => {
    const from = id * WORDS_PER_SEGMENT;
    const own = words.slice(from, from + WORDS_PER_SEGMENT);
    return {
      ...{ id, text: own.join(' '), startS: from * perWord, endS: (from + own.length) * perWord },
      ...{ avgLogprob: -0.1, compressionRatio: 1, noSpeechProb: 0.01, temperature: 0 },
      ...{ seek: 0, tokens: own.map((_word, i) => from + i) },
    };
  });
}

/** Samples a second of simulated speech: 16 bit, one channel. */
export const SPEECH_RATE = 24_000;
const MS_PER_CHARACTER = 60;
const MAX_SPEECH_SEC = 300;

/** How long a text takes to speak, s. */
export function speechDuration(input: string, speed: number): number {
  const usual = (Array.from(input).length * MS_PER_CHARACTER) / 1_000;
  return Math.min(MAX_SPEECH_SEC, Math.max(0.1, usual / (speed > 0 ? speed : 1)));
}

/** Samples `[from, to)` of a tone whose pitch depends on the text. */
export function tone(input: string, from: number, to: number): Buffer {
  const pitch = 220 + ((input.codePointAt(0) ?? 0) % 24) * 20;
  const pcm = Buffer.alloc((to - from) * 2);
  for (let i = from; i < to; i++) {
    const sample = Math.round(8_000 * Math.sin((2 * Math.PI * pitch * i) / SPEECH_RATE));
    pcm.writeInt16LE(sample, (i - from) * 2);
  }
  return pcm;
}

/** What the bytes of a format begin with. Only wav and pcm can be played; the others have the right beginning. */
export function speechHeader(format: string): Buffer {
  switch (format) {
    case 'wav':
      return streamedWavHeader();
    case 'mp3':
      return Buffer.from([0xff, 0xfb, 0x90, 0x00]);
    case 'opus':
      return Buffer.from('OggS');
    case 'flac':
      return Buffer.from('fLaC');
    case 'aac':
      return Buffer.from([0xff, 0xf1, 0x50, 0x80]);
    default:
      return Buffer.alloc(0);
  }
}

/** The sizes of a WAV that is streamed are not known yet. */
function streamedWavHeader(): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(0xffffffff, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(SPEECH_RATE, 24);
  header.writeUInt32LE(SPEECH_RATE * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(0xffffffff, 40);
  return header;
}
