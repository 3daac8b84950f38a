import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorBody, invalidRequest, JSON_TYPE } from './error-envelope';
import { commonHeaders, DEFAULT_TENANT, newRequestId } from './request-context';

/** An answer to what never became a request, or cannot be answered as one any more. */
export interface BareAnswer {
  readonly status: number;
  readonly message: string;
  /** `invalid_request_error` if left out. */
  readonly type?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const LINGER_MS = 2_000;

/** Writes the answer to the socket itself, in the envelope and with a request id, and closes it. */
export function endWith(socket: Duplex, answer: BareAnswer): void {
  if (!socket.writable) return;
  const { status, headers = {} } = answer;
  const body = JSON.stringify(bodyOf(answer));
  const fields = {
    ...commonHeaders(newRequestId(), DEFAULT_TENANT),
    ...headers,
    'content-type': JSON_TYPE,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`;
  socket.end(head + body);
  // Closed with bytes unread, the connection would be reset and the answer lost.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

function bodyOf({ message, type, code }: BareAnswer): ErrorBody {
  const { error } = invalidRequest(message);
  return { error: { ...error, type: type ?? error.type, code: code ?? error.code } };
}
