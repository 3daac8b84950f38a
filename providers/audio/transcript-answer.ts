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

/** The result of a line whose recording the provider cannot read. Its words are for logs, so they are not shown. */
export function unreadableRecording({ wireId }: RecordingName): LineResult {
  const error = {
    message: 'The provider could not read the recording.',
    type: 'invalid_request_error',
    param: 'file_id',
    code: 'provider_refused',
  };
  const body = Buffer.from(JSON.stringify({ error }));
  return { kind: 'answer', wireId, status: 400, requestId: null, body };
}
