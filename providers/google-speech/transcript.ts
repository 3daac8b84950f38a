import { z } from 'zod';
import type { TimedText, Transcription } from '../../core/audio/transcription';
import { languageOfLocale } from '../audio/locales';

/** A duration such as `1.500s`. One of 0 s may be absent. */
const seconds = z
  .string()
  .regex(/^\d+(\.\d+)?s$/)
  .default('0s')
  .transform((text) => Number(text.slice(0, -1)));
const word = z.object({ word: z.string(), startOffset: seconds, endOffset: seconds });
const alternative = z.object({
  transcript: z.string().default(''),
  words: z.array(word).default([]),
});
const result = z.object({
  alternatives: z.array(alternative).default([]),
  resultEndOffset: seconds,
  languageCode: z.string().optional(),
});
const file = z.object({ results: z.array(result).default([]) });

type Result = z.output<typeof result>;

/**
 * Reads a file that Speech-to-Text has written, a `BatchRecognizeResults`; null if it is something else
 * (https://cloud.google.com/speech-to-text/v2/docs/reference/rest/v2/BatchRecognizeResults). A recording in which
 * nothing is said has no results. The end of the last result counts as the length of the recording.
 */
export function readSpeechTranscript(json: unknown): Transcription | null {
  const parsed = file.safeParse(json);
  if (!parsed.success) return null;
  const { results } = parsed.data;
  const said = results.filter(({ alternatives }) => (alternatives[0]?.transcript ?? '') !== '');
  const segments = said.map(segmentOf);
  const words = said.flatMap(({ alternatives }) => (alternatives[0]?.words ?? []).map(wordOf));
  const locale = results.find(({ languageCode }) => languageCode !== undefined)?.languageCode;
  return {
    text: segments.map(({ text }) => text).join(' '),
    language: locale === undefined ? null : languageOfLocale(locale),
    durationSec: Math.max(0, ...results.map(({ resultEndOffset }) => resultEndOffset)),
    segments,
    words,
  };
}

/** A result states its end only. It begins with its first word, or, without words, after the result before it. */
function segmentOf(
  { alternatives, resultEndOffset: endSec }: Result,
  index: number,
  all: readonly Result[],
): TimedText {
  const [best] = alternatives;
  const startSec = best?.words[0]?.startOffset ?? all[index - 1]?.resultEndOffset ?? 0;
  return { startSec, endSec, text: (best?.transcript ?? '').trim() };
}

function wordOf({ word: text, startOffset, endOffset }: z.output<typeof word>): TimedText {
  return { startSec: startOffset, endSec: endOffset, text };
}
