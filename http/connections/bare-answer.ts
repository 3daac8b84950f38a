import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { responseHeaders, DEFAULT_TENANT } from '../context/response-headers';
import { newRequestId } from '../context/request-id';
import { type ErrorBody, invalidRequest, JSON_TYPE } from '../errors/error-envelope';

/** An answer to bytes that are not a request, or to a request that the framework cannot answer any more. */
export interface BareAnswer {
  readonly status: number;
  readonly message: string;
  /** Default `invalid_request_error`. */
  readonly type?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const LINGER_MS = 2_000;

/** Writes the answer to the socket itself, in the error envelope and with a request id, and closes it. */
export function endWith(socket: Duplex, answer: BareAnswer): void {
  if (!socket.writable) return;
  const { status, headers = {} } = answer;
  const body = JSON.stringify(bodyOf(answer));
  const fields = {
    ...responseHeaders(newRequestId(), DEFAULT_TENANT),
    ...headers,
    'content-type': JSON_TYPE,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`;
  socket.end(head + body);
  // Destroying a socket with unread bytes resets the connection, and the client loses the answer.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

function bodyOf({ message, type, code }: BareAnswer): ErrorBody {
  const { error } = invalidRequest(message);
  return { error: { ...error, type: type ?? error.type, code: code ?? error.code } };
}
