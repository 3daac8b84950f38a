import { z } from 'zod';
import type { Transcription } from '../../core/audio/transcription';
import { languageOfSarvam } from './languages';

const file = z.object({
  transcript: z.string(),
  language_code: z.string().nullish(),
  timestamps: z
    .object({
      words: z.array(z.string()),
      start_time_seconds: z.array(z.number()),
      end_time_seconds: z.array(z.number()),
    })
    .nullish(),
});

/**
 * Reads a result file; null if it is something else. What it calls words are phrases: times are of chunks only
 * (https://docs.sarvam.ai/api/speech-to-text/apis/batch). It does not state how long the recording is, so the end of
 * the last phrase counts.
 */
export function readSarvamTranscript(json: unknown): Transcription | null {
  const parsed = file.safeParse(json);
  if (!parsed.success) return null;
  const { transcript: text, language_code: language = null, timestamps } = parsed.data;
  const {
    words = [],
    start_time_seconds: starts = [],
    end_time_seconds: ends = [],
  } = timestamps ?? {};
  const segments = words.map((phrase, index) => {
    const startSec = starts[index] ?? 0;
    return { startSec, endSec: ends[index] ?? startSec, text: phrase };
  });
  return {
    text,
    language: languageOfSarvam(language),
    durationSec: Math.max(0, ...segments.map(({ endSec }) => endSec)),
    segments,
    words: [],
  };
}
