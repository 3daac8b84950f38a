import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type BareAnswer, endWith } from './bare-answer';

/** One request on a connection, and the answer to it. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** A request line that is most of the 16 KiB that Node allows for it and all headers. */
const LONG_REQUEST_LINE = /^[A-Z-]{1,20} [^\n]{8192}/;
const LAST_REQUEST = new WeakMap<object, Exchange>();
/** Connections on which an answer to what was broken waits for its turn. */
const AWAITING_TURN = new WeakSet<object>();

/**
 * What happens on a connection outside of requests and answers (contract §4): whatever cannot be read
 * is answered in the envelope too, once the answers before it are out.
 */
export function addConnectionEvents(server: Server, maxBodyBytes: number): void {
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    LAST_REQUEST.set(request.socket, { request, response });
  };
  // Before the framework's own listener: its answer may be out at once.
  server.prependListener('request', take);
  server.on('checkContinue', (request, response) => {
    const declared = Number(request.headers['content-length'] ?? 0);
    if (!(declared > maxBodyBytes)) response.writeContinue();
    server.emit('request', request, response);
  });
  // Only a wish (RFC 9110 §10.1.1): what is not understood may be ignored.
  server.on('checkExpectation', (request, response) => {
    server.emit('request', request, response);
  });
  server.on('connect', (_request, socket) => {
    endWith(socket, { ...NO_TUNNEL, headers: { allow: 'GET, HEAD, POST, DELETE' } });
  });
  server.on('timeout', answerIdle);
}

/** What is no HTTP is answered on the bare socket, behind the answers that are on their way there. */
export function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  // It was answered, and more of the same came.
  if (socket.writableEnded) return;
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (AWAITING_TURN.has(socket)) return;
  const answer = answerTo(error);
  const before = LAST_REQUEST.get(socket);
  if (before === undefined || before.response.writableFinished) endWith(socket, answer);
  else if (before.request.complete) {
    // What is broken came behind it: its own answer comes first.
    AWAITING_TURN.add(socket);
    before.response.once('close', () => endWith(socket, answer));
  } else if (before.response.headersSent) socket.destroy();
  else endWith(socket, answer);
}

/** Nothing has moved for long: a handler at work is left alone, a sender is told, a reader is cut. */
function answerIdle(socket: Duplex): void {
  const last = LAST_REQUEST.get(socket);
  const isAnswered = last === undefined || last.response.headersSent;
  if (!isAnswered && last.request.complete) return;
  if (isAnswered) socket.destroy();
  else endWith(socket, { status: 408, message: 'The request took too long to arrive.' });
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
