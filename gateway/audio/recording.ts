import {
  type Container,
  CONTAINER_BYTES,
  CONTENT_TYPES,
  containerOf,
} from '../../core/audio/container';
import { probeDuration } from '../../core/audio/duration/duration';
import { NightshiftError } from '../../core/errors';
import type { FormFile } from './receive-form';
import type { ReceivedBody } from './received-body';

/** A recording, as far as its container shows. */
export interface Recording {
  readonly filename: string;
  /** Media type by its bytes. */
  readonly contentType: string;
  readonly bytes: number;
  /** As the container states it, s; null if it does not. */
  readonly durationSec: number | null;
}

/**
 * Finds out what a recording is by its bytes. Its name and the type that the client gives may be anything.
 *
 * @throws invalid_request if it is missing, empty or in no supported container
 */
export async function inspectRecording(
  body: ReceivedBody,
  file: FormFile | null,
): Promise<{ readonly file: FormFile; readonly recording: Recording }> {
  if (file === null) {
    throw invalid('You must provide a file: the recording.', 'missing_required_parameter');
  }
  if (file.length === 0) throw invalid('The file is empty.');
  const { offset, length: bytes, filename } = file;
  const head = await body.readAt(offset, Math.min(CONTAINER_BYTES, bytes));
  const container = containerOf(head);
  if (container === null) {
    const message =
      'Invalid file format. Supported formats: flac, m4a, mp3, mp4, mpeg, mpga, ogg, wav, webm.';
    throw invalid(message);
  }
  const contentType = CONTENT_TYPES[container];
  const durationSec = await statedDuration(body, { offset, bytes, container });
  return { file, recording: { filename, contentType, bytes, durationSec } };
}

async function statedDuration(
  body: ReceivedBody,
  { offset, bytes, container }: { offset: number; bytes: number; container: Container },
): Promise<number | null> {
  const probe = probeDuration(container, bytes);
  let step = probe.next();
  while (step.done !== true) {
    const { offset: at, length } = step.value;
    step = probe.next(await body.readAt(offset + at, Math.max(0, Math.min(length, bytes - at))));
  }
  return step.value;
}

function invalid(message: string, apiCode = 'invalid_value'): NightshiftError {
  return new NightshiftError('invalid_request', message, { param: 'file', apiCode });
}
