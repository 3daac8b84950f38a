import { z } from 'zod';
import { baseName } from '../uploads/file-rules';
import { checkRequest } from './check-request';
import {
  expiresAfter,
  integer,
  ONE_PURPOSE,
  PURPOSES,
  requiredChoice,
  requiredText,
  withCode,
} from './fields';

/** A checked body of `POST /uploads`. */
export interface CreateUpload {
  /** Base name only. */
  readonly filename: string;
  readonly purpose: string;
  readonly bytes: number;
  readonly mimeType: string;
  /** Lifetime of the file from the creation of the upload; null for the default of its purpose. */
  readonly fileExpiresAfterSec: number | null;
}

/** RFC 4288 §4.2 allows 127 characters on each side of the slash. Our limit includes parameters. */
const MIME_TYPE_BYTES = 255;
const BYTES = { min: 1, max: 8 * 1024 ** 3 };

/** Body of `POST /uploads`. */
export const createUploadBody = z
  .strictObject({
    filename: requiredText(),
    purpose: requiredChoice(PURPOSES, ONE_PURPOSE),
    bytes: integer(BYTES),
    mime_type: requiredText()
      .regex(/^[^\u0000]*$/, { error: 'a media type' })
      .refine((text) => Buffer.byteLength(text) <= MIME_TYPE_BYTES, {
        error: `a string of at most ${MIME_TYPE_BYTES} bytes`,
        ...withCode('string_above_max_length'),
      })
      .meta({ maxLength: MIME_TYPE_BYTES }),
    expires_after: expiresAfter().nullish(),
  })
  .meta({ id: 'CreateUpload' });

/** Checks {@link createUploadBody}. @throws invalid_request */
export function parseCreateUpload(body: unknown): CreateUpload {
  const { filename, purpose, bytes, mime_type, expires_after } = checkRequest(
    createUploadBody,
    body,
  );
  return {
    filename: baseName(filename),
    purpose,
    bytes,
    mimeType: mime_type,
    fileExpiresAfterSec: expires_after?.seconds ?? null,
  };
}
