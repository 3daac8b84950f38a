import { z } from 'zod';
import type { TimedText, Transcription } from '../../core/audio/transcription';
import { languageOfLocale } from '../audio/locales';

const time = z.coerce.number().min(0);
const item = z.object({
  type: z.string(),
  alternatives: z.array(z.object({ content: z.string() })),
  start_time: time.optional(),
  end_time: time.optional(),
});
const segment = z.object({ transcript: z.string(), start_time: time, end_time: time });
const file = z.object({
  results: z.object({
    language_code: z.string().optional(),
    transcripts: z.array(z.object({ transcript: z.string() })),
    items: z.array(item).default([]),
    audio_segments: z.array(segment).default([]),
  }),
});

/**
 * Reads a file that Amazon Transcribe has written; null if it is something else. Times are texts in it:
 * https://docs.aws.amazon.com/transcribe/latest/dg/how-input.html#how-it-works-output. It does not state the length
 * of the recording, so the end of the last word counts.
 */
export function readTranscript(json: unknown): Transcription | null {
  const parsed = file.safeParse(json);
  if (!parsed.success) return null;
  const {
    language_code: locale,
    transcripts,
    items,
    audio_segments: segments,
  } = parsed.data.results;
  const words = items.flatMap(wordOf);
  const parts = segments.map((one) => timed(one.start_time, one.end_time, one.transcript));
  return {
    text: transcripts.map(({ transcript }) => transcript).join(' '),
    language: locale === undefined ? null : languageOfLocale(locale),
    durationSec: Math.max(0, ...[words.at(-1), parts.at(-1)].map((last) => last?.endSec ?? 0)),
    segments: parts,
    words,
  };
}

/** Punctuation has no time. */
function wordOf({ alternatives, start_time, end_time }: z.infer<typeof item>): TimedText[] {
  const [best] = alternatives;
  if (best === undefined || start_time === undefined || end_time === undefined) return [];
  return [timed(start_time, end_time, best.content)];
}

function timed(startSec: number, endSec: number, text: string): TimedText {
  return { startSec, endSec, text };
}
