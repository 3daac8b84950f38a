import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { bodyChunks } from '../../http/bodies/body-chunks';
import { encodingFault } from '../../http/bodies/body-parsers';
import {
  type FormEntry,
  formBoundary,
  formEntries,
  readEntry,
} from '../../http/multipart/form-entries';
import { malformed } from '../../http/multipart/malformed';
import type { ReceivedBody } from './received-body';

/** All of a form but its file. */
export const REST_BYTES = 64 * 1024;

/** The part of a form that is the recording. */
export interface FormFile {
  /** As the client named it. */
  readonly filename: string;
  /** Where its bytes are in the form. */
  readonly offset: number;
  readonly length: number;
}

/** A form whose bytes are in a {@link ReceivedBody}. */
export interface ReceivedForm {
  /** Plain fields by name, in the order of the form. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  /** Null if the form had no file. */
  readonly file: FormFile | null;
}

/**
 * Refuses a form before its body is read.
 *
 * @throws unsupported_media_type, unsupported_encoding; payload_too_large if it declares more than the limits
 */
export function checkFormHead(request: FastifyRequest, maxFileBytes: number): string {
  const fault = encodingFault(request);
  if (fault !== null) throw fault;
  const boundary = formBoundary(request.headers['content-type']);
  if (boundary === null) {
    const message =
      "Unsupported content type. This API method only accepts 'multipart/form-data' requests with a boundary.";
    throw new NightshiftError('unsupported_media_type', message);
  }
  if ((declaredBytes(request) ?? 0) > maxFileBytes + REST_BYTES) throw tooLarge(maxFileBytes);
  return boundary;
}

/** The length of a body; null if the client does not declare it. */
export function declaredBytes({ headers }: Pick<FastifyRequest, 'headers'>): number | null {
  const declared = headers['content-length'];
  return declared === undefined ? null : Number(declared);
}

/** Where a form comes from, and where its bytes go. */
export interface ReceiveOptions {
  readonly boundary: string;
  readonly maxFileBytes: number;
  /** Gets every byte of the form, in order. The caller releases it, whatever happens. */
  readonly body: ReceivedBody;
}

/**
 * Reads a form to its end. Its parts may come in any order. Nothing is changed in it: the body is kept as it is, for a
 * model server.
 *
 * @throws invalid_request if the form is malformed or cut; payload_too_large; unavailable without room
 */
export async function receiveForm(
  request: Pick<FastifyRequest, 'raw'>,
  { boundary, maxFileBytes, body }: ReceiveOptions,
): Promise<ReceivedForm> {
  const chunks = bodyChunks(request, {
    maxBytes: maxFileBytes + REST_BYTES,
    tooLong: () => tooLarge(maxFileBytes),
    cut: (cause) => malformed('it was cut', cause),
  });
  const fields = new Map<string, string[]>();
  let file: FormFile | null = null;
  for await (const entry of formEntries(kept(chunks, body), boundary)) {
    if (entry.name === 'file') {
      if (file !== null) throw secondFile();
      file = await readFile(entry, maxFileBytes);
    } else {
      const values = fields.get(entry.name) ?? [];
      fields.set(entry.name, values);
      values.push((await readEntry(entry, REST_BYTES)).toString('utf8'));
    }
  }
  if (body.size - (file?.length ?? 0) > REST_BYTES) throw restTooLarge();
  body.finish();
  return { fields, file };
}

/** Keeps the bytes of a form before they are parsed. */
async function* kept(chunks: AsyncIterable<Buffer>, body: ReceivedBody): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    await body.append(chunk);
    yield chunk;
  }
}

async function readFile(entry: FormEntry, maxFileBytes: number): Promise<FormFile> {
  let length = 0;
  for await (const chunk of entry.body) {
    length += chunk.length;
    if (length > maxFileBytes) throw tooLarge(maxFileBytes);
  }
  return { filename: entry.filename ?? '', offset: entry.offset, length };
}

function tooLarge(maxFileBytes: number): NightshiftError {
  const message = `The file is larger than the limit of ${maxFileBytes} bytes.`;
  const details = { param: 'file', apiCode: 'payload_too_large' };
  return new NightshiftError('payload_too_large', message, details);
}

function restTooLarge(): NightshiftError {
  const message = `The form has more than ${REST_BYTES} bytes besides its file.`;
  return new NightshiftError('payload_too_large', message, { apiCode: 'payload_too_large' });
}

function secondFile(): NightshiftError {
  const { message } = malformed("it has more than one part 'file'");
  return new NightshiftError('invalid_request', message, {
    param: 'file',
    apiCode: 'invalid_value',
  });
}
