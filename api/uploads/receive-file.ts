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

/** How many bytes a form may have in addition to its file. */
export const FORM_OVERHEAD_BYTES = 1024 * 1024;

/** How many bytes boundaries, headers and fields of an ordinary form add at most. */
const USUAL_OVERHEAD_BYTES = 64 * 1024;

export interface ReceiveFileOptions extends Omit<ReceiveOptions, 'store' | 'maxLineBytes'> {
  readonly deps: Pick<RouteDeps, 'store' | 'config'>;
}

/**
 * Reads the form of a request and streams its file into the store. The caller checks the fields, and
 * deletes the object if it refuses the form. @throws invalid_request, payload_too_large,
 * unsupported_encoding, object_store_failed, and the error of the allowance
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
    // `bodyChunks` does this too, but not if the store failed before it read the first byte.
    request.raw.resume();
  }
}

/** Checks the headers before any byte of the body is read. Returns the boundary. */
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
