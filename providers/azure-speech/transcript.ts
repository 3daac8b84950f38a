import { z } from 'zod';
import type { TimedText, Transcription } from '../../core/audio/transcription';
import { languageOfLocale } from '../audio/locales';

const span = { offsetInTicks: z.number().default(0), durationInTicks: z.number().default(0) };
const word = z.object({ word: z.string(), ...span });
const best = z.object({
  display: z.string().default(''),
  words: z.array(word).default([]),
  displayWords: z.array(z.object({ displayText: z.string(), ...span })).default([]),
});
const phrase = z.object({
  recognitionStatus: z.string().default('Success'),
  locale: z.string().optional(),
  nBest: z.array(best).default([]),
  ...span,
});
const file = z.object({
  source: z.string(),
  durationInTicks: z.number().default(0),
  combinedRecognizedPhrases: z.array(z.object({ display: z.string().default('') })),
  recognizedPhrases: z.array(phrase).default([]),
});

/** The transcript of one recording. */
export interface SpeechTranscript {
  /** The address of the recording. */
  readonly source: string;
  readonly transcription: Transcription;
}

const TICKS_PER_SEC = 10_000_000;

/**
 * Reads a result file; null if it is something else. Times are ticks of 100 ns:
 * https://learn.microsoft.com/azure/ai-services/speech-service/batch-transcription-get. Each channel has phrases of
 * its own, which are put in the order of time.
 */
export function readSpeechTranscript(json: unknown): SpeechTranscript | null {
  const parsed = file.safeParse(json);
  if (!parsed.success) return null;
  const { source, durationInTicks, combinedRecognizedPhrases: combined } = parsed.data;
  const phrases = parsed.data.recognizedPhrases
    .filter(({ recognitionStatus, nBest }) => recognitionStatus === 'Success' && nBest.length > 0)
    .sort((a, b) => a.offsetInTicks - b.offsetInTicks);
  const locale = phrases.find((one) => one.locale !== undefined)?.locale;
  return {
    source,
    transcription: {
      text: combined.map(({ display }) => display).join(' '),
      language: locale === undefined ? null : languageOfLocale(locale),
      durationSec: durationInTicks / TICKS_PER_SEC,
      segments: phrases.map((one) => timed(one, one.nBest[0]?.display ?? '')),
      words: phrases.flatMap(({ nBest }) => wordsOf(nBest[0])),
    },
  };
}

function wordsOf(one: z.infer<typeof best> | undefined): TimedText[] {
  if (one === undefined) return [];
  const { words, displayWords } = one;
  if (displayWords.length > 0) return displayWords.map((said) => timed(said, said.displayText));
  return words.map((said) => timed(said, said.word));
}

function timed(
  { offsetInTicks, durationInTicks }: { offsetInTicks: number; durationInTicks: number },
  text: string,
): TimedText {
  const endInTicks = offsetInTicks + durationInTicks;
  return { startSec: offsetInTicks / TICKS_PER_SEC, endSec: endInTicks / TICKS_PER_SEC, text };
}
