import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../../core/errors';
import type { RouteDeps } from '../app-deps';
import { formBoundary } from '../multipart/form-parts';
import { malformed } from '../multipart/malformed';
import { receiveForm, type ReceivedForm, tooLongText } from './receive-form';

/** What the other parts of a form and its boundaries may add to the length of its file. */
const FORM_OVERHEAD_BYTES = 1024 * 1024;

export interface ReceiveFileOptions {
  readonly deps: Pick<RouteDeps, 'store' | 'config'>;
  /** Name of the one field that is a file. */
  readonly field: string;
  /** Where its bytes go; nobody else knows this key. */
  readonly objectKey: string;
  readonly maxFileBytes: number;
}

/** Says of a request what can be said before its body is read. @throws invalid_request, payload_too_large */
export function expectForm(request: FastifyRequest, maxFileBytes: number): string {
  const boundary = formBoundary(request.headers['content-type']);
  if (boundary === null) throw malformed('expected the content type multipart/form-data');
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > maxFileBytes + FORM_OVERHEAD_BYTES) {
    throw new GatewayError('payload_too_large', tooLongText(maxFileBytes));
  }
  return boundary;
}

/**
 * Streams the form of a request, its file into the store; the form is judged by the caller, who takes
 * the object back where it is bad. @throws invalid_request, payload_too_large, object_store_failed
 */
export async function receiveFile(
  request: FastifyRequest,
  { deps, field, objectKey, maxFileBytes }: ReceiveFileOptions,
): Promise<ReceivedForm> {
  const boundary = expectForm(request, maxFileBytes);
  const { store, config } = deps;
  const maxLineBytes = config.limits.max_line_bytes;
  try {
    const options = { store, field, objectKey, maxFileBytes, maxLineBytes };
    return await receiveForm(bodyOf(request), boundary, options);
  } finally {
    // Whatever the client still sends is read and dropped: a connection that is cut under an upload
    // never shows its answer, and SDKs would send the whole file again.
    request.raw.resume();
  }
}

/** The raw body. Leaving it early must not close the connection, which has to carry the answer. */
async function* bodyOf(request: FastifyRequest): AsyncGenerator<Buffer> {
  try {
    yield* request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  } catch (cause) {
    throw malformed('the connection ended before it', cause);
  }
}
