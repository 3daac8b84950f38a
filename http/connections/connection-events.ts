import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type BareAnswer, endWith } from './bare-answer';
import type { ClosedReason, OnClosed } from './closed-reason';
import { type Exchange, watchExchanges } from './exchanges';

/** A request line of more than 8 KiB. If the headers are too large, the URL is the reason. */
const LONG_REQUEST_LINE = /^[A-Z-]{1,20} [^\n]{8192}/;
const LAST_EXCHANGE = Symbol('last exchange');

/** A connection that carries its last exchange: an entry in a weak map would cost each request more. */
type Connection = Duplex & { [LAST_EXCHANGE]?: Exchange };

/** Connections on which the answer to invalid bytes waits for the previous answer. */
const AWAITING_TURN = new WeakSet<object>();

/**
 * Handles the events of a connection that Node would answer itself, so that every refusal has the error
 * envelope (docs/design/api-contract.md#error-envelope). A client that declares a body longer than
 * `maxBodyBytes` gets no `100 Continue`.
 */
export function addConnectionEvents(server: Server, maxBodyBytes: number): void {
  watchExchanges(server, {
    begin: (exchange) => void ((exchange.request.socket as Connection)[LAST_EXCHANGE] = exchange),
  });
  server.on('checkContinue', (request, response) => {
    const declared = Number(request.headers['content-length'] ?? 0);
    if (!(declared > maxBodyBytes)) response.writeContinue();
    server.emit('request', request, response);
  });
  // An unknown expectation may be ignored (RFC 9110 §10.1.1); Node would answer 417 without a body.
  server.on('checkExpectation', (request, response) => {
    server.emit('request', request, response);
  });
  server.on('connect', (_request, socket) => {
    endWith(socket, { ...NO_TUNNEL, headers: { allow: 'GET, HEAD, POST, DELETE' } });
  });
  server.on('timeout', answerIdle);
}

/** Answers invalid HTTP on the socket itself, after the answers that are in progress on it. */
export function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  onClosed: OnClosed,
): void {
  // The first invalid bytes were already answered.
  if (socket.writableEnded) return;
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (AWAITING_TURN.has(socket)) return;
  const reason = reasonOf(error);
  if (reason !== null) onClosed(reason);
  const answer = answerTo(error);
  const last = (socket as Connection)[LAST_EXCHANGE];
  if (last === undefined || last.response.writableFinished) endWith(socket, answer);
  else if (last.request.complete) {
    // The invalid bytes follow a complete request, whose answer comes first.
    AWAITING_TURN.add(socket);
    last.response.once('close', () => endWith(socket, answer));
  } else if (last.response.headersSent) socket.destroy();
  else endWith(socket, answer);
}

/**
 * Handles a connection without traffic for the idle timeout. It stays open while a handler is working. A
 * client that stopped sending gets a 408. A client that stopped reading is disconnected.
 */
function answerIdle(socket: Duplex): void {
  const last = (socket as Connection)[LAST_EXCHANGE];
  const isAnswered = last === undefined || last.response.headersSent;
  if (!isAnswered && last.request.complete) return;
  if (isAnswered) socket.destroy();
  else endWith(socket, { status: 408, message: 'The request took too long to arrive.' });
}

/** `null` if the client itself ended the connection within a request. */
function reasonOf({ code }: NodeJS.ErrnoException): ClosedReason | null {
  if (code === 'HPE_INVALID_EOF_STATE') return null;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'slow_headers';
  return code === 'HPE_HEADER_OVERFLOW' ? 'large_headers' : 'invalid';
}

const NO_TUNNEL = { status: 405, message: 'Not allowed to CONNECT.' };

function answerTo({ code, ...error }: NodeJS.ErrnoException & { rawPacket?: Buffer }): BareAnswer {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return LONG_REQUEST_LINE.test(error.rawPacket?.toString('latin1') ?? '')
        ? { status: 414, message: 'The URL of the request is too long.' }
        : { status: 431, message: 'The headers of the request are too large.' };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, message: 'The chunk extensions of the request are too large.' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, message: 'The request took too long to arrive.' };
    case 'HPE_INVALID_EOF_STATE':
      return { status: 400, message: 'The connection ended before the request did.' };
    default:
      return { status: 400, message: 'The request is not valid HTTP.' };
  }
}
