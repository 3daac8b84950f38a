import type { IncomingMessage, Server } from 'node:http';
import { type BareAnswer, endWith } from './bare-answer';
import type { OnClosed } from './closed-reason';
import { type Exchange, watchExchanges } from './exchanges';

/** How slowly the body of a request may arrive. */
export interface BodyRate {
  /** Smallest average rate; 0 disables the check. */
  readonly bytesPerSec: number;
  /** How long a body may stay below that rate, or pause. */
  readonly graceMs: number;
}

/** A request whose body has not arrived completely. */
interface Arrival extends Exchange {
  /** Bytes of the connection at the last check. */
  readBytes: number;
  /** `performance.now()` of the last check. */
  checkedAtMs: number;
  creditMs: number;
}

const MAX_CHECK_INTERVAL_MS = 1_000;
const CHECKS_PER_GRACE = 5;

/**
 * Ends requests whose body arrives too slowly (docs/design/api-contract.md#slow-clients). A body has a
 * credit of time that starts at `graceMs` and never exceeds it. Waiting for bytes uses the credit up;
 * bytes that arrive give back the time they may take at `bytesPerSec`. So an upload of any size may go
 * on while it keeps up the rate, a short network failure costs nothing, and a byte now and then does
 * not hold a connection. Time in which we do not read, because the object store is slow, is free.
 */
export function watchBodyRates(server: Server, rate: BodyRate, onClosed: OnClosed): void {
  if (rate.bytesPerSec === 0) return;
  const arrivals = new Map<IncomingMessage, Arrival>();
  watchExchanges(server, {
    begin: ({ request, response }) => {
      if (!hasBody(request)) return;
      const readBytes = request.socket.bytesRead;
      const checkedAtMs = performance.now();
      arrivals.set(request, { request, response, readBytes, checkedAtMs, creditMs: rate.graceMs });
    },
    end: ({ request }) => void arrivals.delete(request),
  });
  const check = (): void => {
    for (const arrival of arrivals.values()) {
      if (arrival.request.complete) arrivals.delete(arrival.request);
      else if (!hasCredit(arrival, rate)) {
        arrivals.delete(arrival.request);
        onClosed('slow_body');
        endSlow(arrival, rate);
      }
    }
  };
  const everyMs = Math.min(MAX_CHECK_INTERVAL_MS, rate.graceMs / CHECKS_PER_GRACE);
  const timer = setInterval(check, everyMs).unref();
  server.once('close', () => clearInterval(timer));
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function hasCredit(arrival: Arrival, { bytesPerSec, graceMs }: BodyRate): boolean {
  const { request } = arrival;
  const nowMs = performance.now();
  const readBytes = request.socket.bytesRead;
  // Bytes in the buffer mean that our handler is slow, not the client.
  const waitedMs = request.readableLength > 0 ? 0 : nowMs - arrival.checkedAtMs;
  const earnedMs = ((readBytes - arrival.readBytes) * 1_000) / bytesPerSec;
  arrival.creditMs = Math.min(graceMs, arrival.creditMs - waitedMs + earnedMs);
  arrival.readBytes = readBytes;
  arrival.checkedAtMs = nowMs;
  return arrival.creditMs > 0;
}

function endSlow({ request, response }: Exchange, rate: BodyRate): void {
  const { socket } = request;
  // `response.socket` is null while an earlier answer on this connection is unfinished. In both cases an
  // answer has begun, and writing another one would corrupt it.
  if (response.headersSent || response.socket === null) socket.destroy();
  else endWith(socket, tooSlow(rate));
}

function tooSlow({ bytesPerSec }: BodyRate): BareAnswer {
  const message = `The body of the request arrived too slowly: at least ${bytesPerSec} bytes per second are needed. Try again, over a faster connection or with a smaller body.`;
  return { status: 408, message };
}
