import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type BareAnswer, endWith } from './bare-answer';

/** How slowly the body of a request may come. */
export interface BodyRate {
  /** Smallest rate over the long run; 0 lets a body take any time. */
  readonly bytesPerSec: number;
  /** How long a body may come more slowly, or not at all. */
  readonly graceMs: number;
}

/** A request whose body has not come to its end. */
interface Arrival {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readBytes: number;
  atMs: number;
  /** Time that the sender may still waste. */
  creditMs: number;
}

const MAX_TICK_MS = 1_000;
const TICKS_PER_GRACE = 5;

/**
 * Ends requests whose body comes too slowly. A body has a credit of time, `graceMs` at the start and at
 * most; each second that we wait for bytes takes a second of it, and bytes give back the time they may
 * take at the smallest rate. So an upload of any size may go on as long as it keeps up the rate, a
 * network that fails for a while costs nothing, and a byte now and then does not hold a connection.
 * While we ourselves do not read, because the object store is slow, no credit is lost.
 */
export function watchBodyRates(server: Server, rate: BodyRate): void {
  if (rate.bytesPerSec === 0) return;
  const arrivals = new Map<IncomingMessage, Arrival>();
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!hasBody(request)) return;
    const readBytes = request.socket.bytesRead;
    const atMs = performance.now();
    arrivals.set(request, { request, response, readBytes, atMs, creditMs: rate.graceMs });
    request.once('close', () => arrivals.delete(request));
  });
  const look = (): void => {
    for (const arrival of arrivals.values()) {
      if (arrival.request.complete) arrivals.delete(arrival.request);
      else if (!hasCredit(arrival, rate)) {
        arrivals.delete(arrival.request);
        endSlow(arrival, rate);
      }
    }
  };
  const timer = setInterval(look, Math.min(MAX_TICK_MS, rate.graceMs / TICKS_PER_GRACE)).unref();
  server.once('close', () => clearInterval(timer));
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function hasCredit(arrival: Arrival, { bytesPerSec, graceMs }: BodyRate): boolean {
  const { request } = arrival;
  const nowMs = performance.now();
  const readBytes = request.socket.bytesRead;
  // Bytes that nobody has taken yet: it is we who are slow.
  const waitedMs = request.readableLength > 0 ? 0 : nowMs - arrival.atMs;
  const earnedMs = ((readBytes - arrival.readBytes) * 1_000) / bytesPerSec;
  arrival.creditMs = Math.min(graceMs, arrival.creditMs - waitedMs + earnedMs);
  arrival.readBytes = readBytes;
  arrival.atMs = nowMs;
  return arrival.creditMs > 0;
}

function endSlow({ request, response }: Arrival, rate: BodyRate): void {
  const { socket } = request;
  // An answer that has begun, or one before it on this connection, cannot be followed by this one.
  if (response.headersSent || response.socket === null) socket.destroy();
  else endWith(socket, tooSlow(rate));
}

function tooSlow({ bytesPerSec }: BodyRate): BareAnswer {
  const message = `The body of the request arrived too slowly: at least ${bytesPerSec} bytes per second are needed. Try again, over a faster connection or with a smaller body.`;
  return { status: 408, message };
}
