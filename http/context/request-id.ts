import { randomFillSync } from 'node:crypto';
import type { FastifyRequest } from 'fastify';

/** Characters and length that are safe in a log line and a response header. */
const CLIENT_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** Id of a request: the client's own `x-request-id` if it is safe to log and echo, else a new one. */
export function requestId(raw: { headers: Record<string, string | string[] | undefined> }): string {
  const given = raw.headers['x-request-id'];
  return typeof given === 'string' && CLIENT_ID.test(given) ? given : newRequestId();
}

/** As {@link requestId}, but `x-client-request-id` of OpenAI's clients stands in for a missing `x-request-id`. */
export function clientRequestId({ id, raw }: Pick<FastifyRequest, 'id' | 'raw'>): string {
  const { 'x-request-id': own, 'x-client-request-id': given } = raw.headers;
  if (typeof own === 'string' && CLIENT_ID.test(own)) return id;
  return typeof given === 'string' && CLIENT_ID.test(given) ? given : id;
}

const ID_BYTES = 16;
/** Random bytes in stock: to draw those of one id costs 2 µs. */
const STOCK = Buffer.alloc(256 * ID_BYTES);
let used = STOCK.length;

/** A random request id, `req_` and 32 hexadecimal digits. */
export function newRequestId(): string {
  if (used === STOCK.length) {
    randomFillSync(STOCK);
    used = 0;
  }
  const id = STOCK.toString('hex', used, used + ID_BYTES);
  used += ID_BYTES;
  return `req_${id}`;
}
