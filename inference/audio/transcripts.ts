import type { Transcription, TranscriptSegment } from '../../core/audio/transcription';
import type { WireSegment, WireTranscript } from '../../proto/audio-messages';
import { figureOf, secondsOf } from './stated-numbers';

/** The result of a worker in the words of core. */
export function transcriptionOf(wire: WireTranscript): Transcription {
  const { text, language, durationS, segments, words, usage } = wire;
  return {
    text,
    language: language === '' ? null : language,
    durationSec: secondsOf(durationS),
    segments: segments.map(segmentOf),
    words: words.map((word) => ({
      text: word.text,
      startSec: secondsOf(word.startS),
      endSec: secondsOf(word.endS),
    })),
    usage:
      usage === null
        ? null
        : {
            audioSec: secondsOf(usage.audioSeconds),
            inputTokens: usage.inputTokens,
            outputTokens: usage.outputTokens,
          },
  };
}

/** One segment in the words of core. */
export function segmentOf(wire: WireSegment): TranscriptSegment {
  const { seek, tokens, temperature, avgLogprob, compressionRatio, noSpeechProb } = wire;
  return {
    text: wire.text,
    startSec: secondsOf(wire.startS),
    endSec: secondsOf(wire.endS),
    details: {
      ...{ seek, tokens },
      temperature: figureOf(temperature),
      avgLogprob: figureOf(avgLogprob),
      compressionRatio: figureOf(compressionRatio),
      noSpeechProb: figureOf(noSpeechProb),
    },
  };
}
