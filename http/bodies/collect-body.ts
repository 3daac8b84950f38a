import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { BodyBuffer } from './body-buffer';

/** Called once, with the body or with the reason why there is none. */
export type OnBody = (body: Buffer | NightshiftError) => void;

/**
 * Collects the body of a request, of at most `maxBytes`. Its bytes count in `bodyPlace`. It listens to events: an
 * async iterator costs a small request 10 µs, more than everything else that is done with its body.
 *
 * A body that is refused is read to its end and dropped: the connection stays open to carry the answer, which SDKs
 * would not see on a connection that is reset.
 */
export function collectBody(request: FastifyRequest, maxBytes: number, onBody: OnBody): void {
  const { raw, bodyPlace } = request;
  const buffer = bufferFor(request, maxBytes);
  if (Number(raw.headers['content-length'] ?? 0) > maxBytes) return refuse(tooLarge());
  // Looking up the caller takes time. A stream that has closed meanwhile has no further events.
  if (raw.destroyed) return onBody(cut());
  let isSettled = false;
  const settle = (body: Buffer | NightshiftError): void => {
    isSettled = true;
    bodyPlace?.evictable(null);
    onBody(body);
  };
  const stop = (fault: NightshiftError): void => {
    // The listeners of a complete body stay: to remove them costs a small request more than to call them.
    if (isSettled) return;
    raw.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut);
    settle(fault);
  };
  const onData = (chunk: Buffer): void => {
    const fault = buffer.length + chunk.length > maxBytes ? tooLarge() : null;
    const refusal = fault ?? (buffer.append(chunk) ? null : noRoom());
    // The stream goes on flowing without a listener.
    if (refusal !== null) stop(refusal);
  };
  const onEnd = (): void => settle(buffer.finish());
  const onCut = (cause?: unknown): void => {
    if (!isSettled) stop(cut(cause));
  };
  raw.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut);
  bodyPlace?.evictable(() => stop(noRoom()));

  function refuse(fault: NightshiftError): void {
    raw.resume();
    onBody(fault);
  }
}

function bufferFor({ raw, bodyPlace }: FastifyRequest, maxBytes: number): BodyBuffer {
  const { 'content-length': declared } = raw.headers;
  return new BodyBuffer({
    declaredBytes: declared === undefined ? null : Number(declared),
    maxBytes,
    reserve: (bytes) => bodyPlace?.reserve(bytes) ?? true,
  });
}

function tooLarge(): NightshiftError {
  return new NightshiftError('payload_too_large', 'The body of the request is too large.');
}

function noRoom(): NightshiftError {
  return new NightshiftError('unavailable', 'There is no room for the body of the request.');
}

function cut(cause?: unknown): NightshiftError {
  const message = 'The connection ended before the body of the request.';
  return new NightshiftError('invalid_request', message, { cause });
}
