import type { FastifyRequest } from 'fastify';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { RouteDeps } from '../app-deps';
import { formBoundary } from '../../http/multipart/form-parts';
import { malformed } from '../../http/multipart/malformed';
import { codingFault } from '../plugins/request-bodies';
import {
  type FileRoom,
  fileTooLong,
  receiveForm,
  type ReceivedForm,
  tooLongText,
} from './receive-form';

/** What the other parts of a form and its boundaries may add to the length of its file. */
export const FORM_OVERHEAD_BYTES = 1024 * 1024;

/** What boundaries, headers, and fields of an ordinary form have at most. */
const USUAL_OVERHEAD_BYTES = 64 * 1024;

export interface ReceiveFileOptions {
  readonly deps: Pick<RouteDeps, 'store' | 'config'>;
  /** Name of the one field that is a file. */
  readonly field: string;
  /** Names of the fields that are plain texts. */
  readonly texts: ReadonlySet<string>;
  /** Where its bytes go; nobody else knows this key. */
  readonly objectKey: string;
  readonly maxFileBytes: number;
  readonly room: FileRoom;
}

/** Says of a request what can be said before its body is read. @throws invalid_request, payload_too_large, unsupported_encoding */
function expectForm(
  request: FastifyRequest,
  { maxFileBytes, room }: Pick<ReceiveFileOptions, 'maxFileBytes' | 'room'>,
): string {
  const boundary = formBoundary(request.headers['content-type']);
  if (boundary === null) throw malformed('expected the content type multipart/form-data');
  const fault = codingFault(request);
  if (fault !== null) throw fault;
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > maxFileBytes + FORM_OVERHEAD_BYTES) {
    throw new NightshiftError('payload_too_large', tooLongText(maxFileBytes));
  }
  if (declared > room.bytes + USUAL_OVERHEAD_BYTES) throw room.fault();
  return boundary;
}

/**
 * Streams the form of a request, its file into the store; the form is judged by the caller, who takes
 * the object back where it is bad. @throws invalid_request, payload_too_large, object_store_failed
 */
export async function receiveFile(
  request: FastifyRequest,
  { deps, field, texts, objectKey, maxFileBytes, room }: ReceiveFileOptions,
): Promise<ReceivedForm> {
  const boundary = expectForm(request, { maxFileBytes, room });
  const { store, config } = deps;
  const maxLineBytes = config.limits.max_line_bytes;
  try {
    const options = { store, field, texts, objectKey, maxFileBytes, maxLineBytes, room };
    return await receiveForm(bodyOf(request, maxFileBytes), boundary, options);
  } finally {
    // Whatever the client still sends is read and dropped: a connection that is cut under an upload
    // never shows its answer, and SDKs would send the whole file again.
    request.raw.resume();
  }
}

/**
 * The raw body, which has an end also where its length was not declared and its file has none. Leaving
 * it early must not close the connection, which has to carry the answer.
 */
async function* bodyOf(request: FastifyRequest, maxFileBytes: number): AsyncGenerator<Buffer> {
  const chunks = request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  let left = maxFileBytes + FORM_OVERHEAD_BYTES;
  try {
    for await (const chunk of chunks) {
      left -= chunk.length;
      if (left < 0) throw fileTooLong(maxFileBytes);
      yield chunk;
    }
  } catch (cause) {
    throw isNightshiftError(cause) ? cause : malformed('the connection ended before it', cause);
  }
}
