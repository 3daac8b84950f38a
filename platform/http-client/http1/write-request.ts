import type { Socket } from 'node:net';

/** One request whose body is in memory. */
export interface Http1Request {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Name, value, name, value, …; without `host`, `connection` and `content-length`. */
  readonly headers: readonly string[];
  /** Headers that requests have in common, in one list, which is checked and rendered once: it must not change. */
  readonly common: readonly string[];
  /** It must not change until its response has arrived. */
  readonly body: Buffer;
}

/** Longer requests are written in two pieces, because copying them would cost more than the second piece. */
const MAX_COPIED_BYTES = 64 * 1024;
/** Anything else could end a field, and begin another one or a request. */
const TARGET = /^[\x21-\x7e]+$/;
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Where head and body are put together. A request is usually sent while it is written, so one is enough for all. */
let scratch: Buffer | null = null;

/** Writes a request with one system call, as a rule. @throws TypeError if HTTP cannot carry a part of it */
export function writeRequest(socket: Socket, host: string, request: Http1Request): void {
  const { body } = request;
  const head = headOf(host, request);
  const length = head.length + body.length;
  if (length > MAX_COPIED_BYTES) return writeTwice(socket, head, body);
  scratch ??= Buffer.allocUnsafeSlow(MAX_COPIED_BYTES);
  scratch.write(head, 0, 'latin1');
  body.copy(scratch, head.length);
  socket.write(scratch.subarray(0, length));
  // The rest is sent later, from the same memory.
  if (socket.writableLength > 0) scratch = null;
}

function writeTwice(socket: Socket, head: string, body: Buffer): void {
  socket.cork();
  socket.write(head, 'latin1');
  socket.write(body);
  socket.uncork();
}

function headOf(host: string, request: Http1Request): string {
  const { headers, body } = request;
  return `${beginOf(host, request)}${fieldsOf(headers)}content-length: ${body.length}\r\n\r\n`;
}

/** The beginning of a head, and what it was made from. */
interface Begin extends Pick<Http1Request, 'method' | 'path'> {
  readonly host: string;
  readonly text: string;
}

/**
 * Kept for each list of common headers, whose requests mostly go to one path. A request then takes 1.6 µs in a loop, not
 * 2.3 to 3.0 with checks and texts of its own.
 */
const begins = new WeakMap<readonly string[], Begin>();

function beginOf(host: string, { method, path, common }: Http1Request): string {
  const kept = begins.get(common);
  if (kept?.path === path && kept.method === method && kept.host === host) return kept.text;
  if (!TARGET.test(path))
    throw new TypeError('the path of a request has a character that is not allowed');
  const first = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  const text = `${first}${fieldsOf(common)}`;
  begins.set(common, { method, path, host, text });
  return text;
}

function fieldsOf(headers: readonly string[]): string {
  let fields = '';
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new TypeError(`the header ${JSON.stringify(name)} has a character that is not allowed`);
    }
    fields += `${name}: ${value}\r\n`;
  }
  return fields;
}
