import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { bodyChunks } from '../../http/bodies/body-chunks';
import { encodingFault } from '../../http/bodies/body-parsers';
import { formBoundary } from '../../http/multipart/form-entries';
import { malformed } from '../../http/multipart/malformed';
import type { RouteDeps } from '../app-deps';
import {
  fileTooLong,
  type ReceivedForm,
  receiveForm,
  type ReceiveOptions,
  tooLongText,
} from './receive-form';

/** Most bytes that a form may add to its file. */
export const FORM_OVERHEAD_BYTES = 1024 * 1024;

/** Most bytes that boundaries, headers and fields of an ordinary form add. */
const USUAL_OVERHEAD_BYTES = 64 * 1024;

export interface ReceiveFileOptions extends Omit<ReceiveOptions, 'store' | 'maxLineBytes'> {
  readonly deps: Pick<RouteDeps, 'store' | 'config'>;
}

/**
 * Streams the form of a request, with its file into the store. The caller judges the form, and discards
 * the object of a bad one. @throws invalid_request, payload_too_large, unsupported_encoding,
 * object_store_failed, and what the allowance throws
 */
export async function receiveFile(
  request: FastifyRequest,
  { deps: { store, config }, ...options }: ReceiveFileOptions,
): Promise<ReceivedForm> {
  const boundary = expectForm(request, options);
  const { maxFileBytes } = options;
  const bounds = {
    maxBytes: maxFileBytes + FORM_OVERHEAD_BYTES,
    tooLong: () => fileTooLong(maxFileBytes),
    cut: (cause: unknown) => malformed('the connection ended before it', cause),
  };
  try {
    const maxLineBytes = config.limits.max_line_bytes;
    return await receiveForm(bodyChunks(request, bounds), boundary, {
      ...options,
      store,
      maxLineBytes,
    });
  } finally {
    // Also if the store failed before the first byte was read: see bodyChunks.
    request.raw.resume();
  }
}

/** Refuses what the headers alone show to be wrong, before any byte is read. Returns the boundary. */
function expectForm(
  request: FastifyRequest,
  { maxFileBytes, allowance }: Pick<ReceiveOptions, 'maxFileBytes' | 'allowance'>,
): string {
  const boundary = formBoundary(request.headers['content-type']);
  if (boundary === null) throw malformed('expected the content type multipart/form-data');
  const fault = encodingFault(request);
  if (fault !== null) throw fault;
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > maxFileBytes + FORM_OVERHEAD_BYTES) {
    throw new NightshiftError('payload_too_large', tooLongText(maxFileBytes));
  }
  if (declared > allowance.bytes + USUAL_OVERHEAD_BYTES) throw allowance.exceeded();
  return boundary;
}
