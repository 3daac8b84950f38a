import { NightshiftError } from '../../core/errors';

/** The 400 of a form that cannot be read; `reason` completes "Could not parse the multipart form: …". */
export function malformed(reason: string, cause?: unknown): NightshiftError {
  const message = `Could not parse the multipart form: ${reason}.`;
  return new NightshiftError('invalid_request', message, cause === undefined ? {} : { cause });
}
