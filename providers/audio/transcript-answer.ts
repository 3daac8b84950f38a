import { transcriptionBody, type Transcription } from '../../core/audio/transcription';
import type { LineResult } from '../provider';
import type { RecordingName } from './recording-name';

/** The result of a line whose recording was recognised. */
export function transcriptAnswer(
  { wireId, view }: RecordingName,
  transcription: Transcription,
): LineResult {
  const body = Buffer.from(JSON.stringify(transcriptionBody(transcription, view)));
  return { kind: 'answer', wireId, status: 200, requestId: null, body };
}

/** The JSON value of a file of a provider; undefined if it is none. */
export function parsedFile(pieces: readonly Buffer[]): unknown {
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
