import type { FastifyRequest } from 'fastify';
import { type NightshiftError, isNightshiftError } from '../../core/errors';

/** Bounds of a body that is read as it arrives. */
export interface BodyBounds {
  readonly maxBytes: number;
  /** Thrown as soon as more bytes arrive. */
  tooLong(): NightshiftError;
  /** Thrown if the connection ends first. */
  cut(cause: unknown): NightshiftError;
}

/**
 * The chunks of a request's body. When the caller stops early, the rest is read and dropped: the
 * connection stays open to carry the answer, which SDKs would not see on a connection that is reset.
 */
export async function* bodyChunks(
  { raw }: Pick<FastifyRequest, 'raw'>,
  { maxBytes, tooLong, cut }: BodyBounds,
): AsyncGenerator<Buffer> {
  const chunks = raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  let bytes = 0;
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLong();
      yield chunk;
    }
  } catch (error) {
    throw isNightshiftError(error) ? error : cut(error);
  } finally {
    raw.resume();
  }
}
