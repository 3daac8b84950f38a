/** What a recogniser says about a recording. Times are seconds from its beginning. */
export interface Transcription {
  readonly text: string;
  /** The spoken language as ISO 639-1, such as `en`; null if the recogniser does not say. */
  readonly language: string | null;
  readonly durationSec: number;
  readonly segments: readonly TranscriptSegment[];
  readonly words: readonly TimedText[];
  /** What the recogniser counted; without it, answers state the duration. */
  readonly usage?: AudioUsage | null;
}

/** What a recogniser counted. Without tokens it counts seconds. */
export interface AudioUsage {
  readonly audioSec: number;
  /** 0 if it does not count tokens. */
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A segment, with what the recogniser says of its certainty. */
export interface TranscriptSegment extends TimedText {
  readonly details?: SegmentDetails;
}

/** Members of OpenAI's segments besides text and times. */
export interface SegmentDetails {
  readonly seek: number;
  readonly tokens: readonly number[];
  readonly temperature: number;
  readonly avgLogprob: number;
  readonly compressionRatio: number;
  readonly noSpeechProb: number;
}

/** A part of the text, and when it is spoken. */
export interface TimedText {
  readonly startSec: number;
  readonly endSec: number;
  readonly text: string;
}

/** The formats of OpenAI's route. */
export const TRANSCRIPTION_FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json'] as const;
/** A format of an answer. */
export type TranscriptionFormat = (typeof TRANSCRIPTION_FORMATS)[number];

/** What an answer shows. */
export interface TranscriptionView {
  readonly format: TranscriptionFormat;
  /** For `verbose_json`. */
  readonly hasSegments: boolean;
  /** For `verbose_json`. */
  readonly hasWords: boolean;
  /** For `verbose_json`; `transcribe` by default. */
  readonly task?: 'transcribe' | 'translate';
}

/**
 * The body of an answer in a result line, as OpenAI's API gives it:
 * https://platform.openai.com/docs/api-reference/audio/createTranscription. A result line is JSON, so the formats
 * that are text become the member `text`.
 */
export function transcriptionBody(
  transcription: Transcription,
  view: TranscriptionView,
): Readonly<Record<string, unknown>> {
  const usage = usageBody(transcription);
  switch (view.format) {
    case 'json':
      return { text: transcription.text, usage };
    case 'text':
      return { text: `${transcription.text}\n` };
    case 'srt':
      return { text: subRip(transcription) };
    case 'vtt':
      return { text: webVtt(transcription) };
    case 'verbose_json':
      return { ...verbose(transcription, view), usage };
  }
}

function verbose(
  { text, language, durationSec, segments, words }: Transcription,
  { hasSegments, hasWords, task = 'transcribe' }: TranscriptionView,
): Readonly<Record<string, unknown>> {
  return {
    task,
    language: language === null ? 'unknown' : languageName(language),
    duration: durationSec,
    text,
    ...(hasSegments ? { segments: segments.map((one, id) => segmentBody(one, id)) } : {}),
    ...(hasWords ? { words: words.map((one) => ({ word: one.text, ...spoken(one) })) } : {}),
  };
}

/** What an answer says it used: tokens if the recogniser counts them, else seconds, rounded up. */
export function usageBody({
  usage,
  durationSec,
}: Transcription): Readonly<Record<string, unknown>> {
  const { audioSec = 0, inputTokens = 0, outputTokens = 0 } = usage ?? {};
  const total = inputTokens + outputTokens;
  if (total === 0) return { type: 'duration', seconds: Math.ceil(audioSec || durationSec) };
  return {
    type: 'tokens',
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: total,
  };
}

function segmentBody(segment: TranscriptSegment, id: number): Readonly<Record<string, unknown>> {
  const { details, text } = segment;
  if (details === undefined) return { id, ...spoken(segment), text };
  return {
    id,
    seek: details.seek,
    ...spoken(segment),
    text,
    tokens: details.tokens,
    temperature: details.temperature,
    avg_logprob: details.avgLogprob,
    compression_ratio: details.compressionRatio,
    no_speech_prob: details.noSpeechProb,
  };
}

function spoken({ startSec, endSec }: TimedText): { readonly start: number; readonly end: number } {
  return { start: startSec, end: endSec };
}

/** `english` for `en`, as OpenAI names languages. What is not a language code stays as it is. */
function languageName(code: string): string {
  const names = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'code' });
  try {
    return (names.of(code) ?? code).toLowerCase();
  } catch {
    return code.toLowerCase();
  }
}

/** Subtitles as SubRip: https://www.loc.gov/preservation/digital/formats/fdd/fdd000569.shtml. */
function subRip(transcription: Transcription): string {
  const cues = subtitlesOf(transcription).map(({ startSec, endSec, text }, index) => {
    return `${index + 1}\n${timeOf(startSec, ',')} --> ${timeOf(endSec, ',')}\n${cueText(text)}\n\n`;
  });
  return cues.join('');
}

/** Subtitles as WebVTT: https://www.w3.org/TR/webvtt1/. */
function webVtt(transcription: Transcription): string {
  const cues = subtitlesOf(transcription).map(({ startSec, endSec, text }) => {
    return `${timeOf(startSec, '.')} --> ${timeOf(endSec, '.')}\n${cueText(text)}\n\n`;
  });
  return `WEBVTT\n\n${cues.join('')}`;
}

/** Segments begin with a space, and neither an empty line nor an arrow may stand within a subtitle. */
function cueText(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '')
    .join('\n')
    .replaceAll('-->', '->');
}

/** A recogniser without segments gives one subtitle for the whole recording. */
function subtitlesOf({ segments, text, durationSec }: Transcription): readonly TimedText[] {
  if (segments.length > 0 || text === '') return segments;
  return [{ startSec: 0, endSec: durationSec, text }];
}

/** `hh:mm:ss` and milliseconds. */
function timeOf(seconds: number, separator: ',' | '.'): string {
  const ms = Math.round(seconds * 1_000);
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  const whole = [hours, minutes, Math.floor(ms / 1_000) % 60];
  const clock = whole.map((part) => String(part).padStart(2, '0')).join(':');
  return `${clock}${separator}${String(ms % 1_000).padStart(3, '0')}`;
}
