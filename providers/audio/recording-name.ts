import { TRANSCRIPTION_FORMATS, type TranscriptionView } from '../../core/audio/transcription';

/** A recording in the input of a job. */
export interface RecordingName {
  readonly wireId: string;
  /** How the answer is shown. */
  readonly view: TranscriptionView;
  /** Of the file's name, lower-case, without the dot; empty without one. */
  readonly extension: string;
}

const WORDS = '-words';
const NO_SEGMENTS = '-nosegments';

/**
 * The name of a recording at a provider: `<wire id>.<view>.<extension>`, such as `n12.verbose_json-words.wav`.
 * Results name the recording that they are of, so the answer can be rendered without another look at the line.
 */
export function recordingName({ wireId, view, extension }: RecordingName): string {
  const { format, hasSegments, hasWords } = view;
  const shown = `${format}${hasWords ? WORDS : ''}${hasSegments ? '' : NO_SEGMENTS}`;
  return `${wireId}.${shown}${extension === '' ? '' : `.${extension}`}`;
}

/** Reads the name of a recording, or of a file that was named after one. Null for any other name. */
export function readRecordingName(name: string): RecordingName | null {
  const [wireId = '', shown = '', extension = ''] = name.split('.');
  const format = TRANSCRIPTION_FORMATS.find((one) => one === shown.split('-')[0]);
  if (wireId === '' || format === undefined) return null;
  const hasSegments = !shown.includes(NO_SEGMENTS);
  return { wireId, view: { format, hasSegments, hasWords: shown.includes(WORDS) }, extension };
}

/** The extension of a file that a client has uploaded, as far as it is one of a recording. */
export function extensionOf(filename: string): string {
  return /\.([a-z0-9]{1,5})$/i.exec(filename)?.[1]?.toLowerCase() ?? '';
}
