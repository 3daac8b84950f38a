import { InvalidArgumentError } from 'commander';

const EXTENSIONS = {
  text: 'txt',
  json: 'json',
  verbose_json: 'json',
  srt: 'srt',
  vtt: 'vtt',
} as const;

/** A format of OpenAI's route. */
export type TranscriptFormat = keyof typeof EXTENSIONS;

/** Names of all formats, for help. */
export const TRANSCRIPT_FORMATS = Object.keys(EXTENSIONS).join(', ');

/** @throws InvalidArgumentError if there is no such format */
export function transcriptFormat(text: string): TranscriptFormat {
  if (Object.hasOwn(EXTENSIONS, text)) return text as TranscriptFormat;
  throw new InvalidArgumentError(`expected one of ${TRANSCRIPT_FORMATS}`);
}

/** The extension of a file with a transcript. */
export function extensionOf(format: TranscriptFormat): string {
  return EXTENSIONS[format];
}

/** A transcript as text: JSON formats keep the whole answer. */
export function transcriptText(answer: unknown, format: TranscriptFormat): string {
  if (format === 'json' || format === 'verbose_json') return `${JSON.stringify(answer, null, 2)}\n`;
  const text =
    typeof answer === 'object' && answer !== null && 'text' in answer ? answer.text : answer;
  return `${String(text).trimEnd()}\n`;
}
