import { missing, tooLong, withinBounds, wrongType, wrongValue } from './faults';
import { baseName, checkPurpose } from './file-rules';
import { type Body, onlyKnown, parseExpiresAfter, present, requiredText } from './members';

/** A checked body of `POST /uploads`. */
export interface CreateUpload {
  /** Base name only. */
  readonly filename: string;
  readonly purpose: string;
  readonly bytes: number;
  readonly mimeType: string;
  /** Life of the file from the creation of the upload, seconds; null is the purpose's own. */
  readonly fileExpiresAfterSec: number | null;
}

const KNOWN = new Set(['filename', 'purpose', 'bytes', 'mime_type', 'expires_after']);
/** As long as a media type may be (RFC 4288 §4.2), with parameters. */
const MIME_TYPE_BYTES = 255;
const BYTES = { min: 1, max: 8 * 1024 ** 3 } as const;

/** Judges what is asked for, first fault answered (contract §1.7). @throws invalid_request */
export function parseCreateUpload(body: Body): CreateUpload {
  const filename = requiredText(body, 'filename');
  const purpose = checkPurpose(requiredText(body, 'purpose'));
  const bytes = present(body, 'bytes');
  if (bytes === undefined) throw missing('bytes');
  if (!Number.isInteger(bytes)) throw wrongType('bytes', 'an integer');
  withinBounds(Number(bytes), 'bytes', BYTES);
  const mimeType = requiredText(body, 'mime_type');
  if (mimeType.includes('\0')) throw wrongValue('mime_type', 'a media type');
  if (Buffer.byteLength(mimeType) > MIME_TYPE_BYTES) throw tooLong('mime_type', MIME_TYPE_BYTES);
  const fileExpiresAfterSec = parseExpiresAfter(body, 'expires_after');
  onlyKnown(body, KNOWN);
  const name = baseName(filename);
  return { filename: name, purpose, bytes: Number(bytes), mimeType, fileExpiresAfterSec };
}
