import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Arrival } from '../checker/evidence';
import { finalAnswer, lineOfBody, type PlacedLine, USER_ID, userEvents } from './answers';
import type { Lateness } from './lateness';
import { watchLateness } from './lateness';

/** A model server that answers lines as they ask for it, and records every request. */
export interface FaultsModelServer {
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Closes every connection and refuses new ones until the promise has resolved. */
  cut(forMs: number): Promise<void>;
  readonly lateness: Lateness;
  close(): Promise<void>;
}

/** Between two events of a user's answer. */
const EVENT_MS = 20;

export async function startFaultsModelServer(): Promise<FaultsModelServer> {
  const arrivals: Arrival[] = [];
  const tries = new Map<string, number>();
  /** How many cuts last. Cuts may overlap: the last one to end opens the server again. */
  let cuts = 0;
  let closed = Promise.resolve();
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const lateness = watchLateness(port);

  function listen(at: number): Promise<Server> {
    const opened = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      // The second is the probe of a gateway.
      if (lateness.isProbe(request) || request.method === 'GET') return void response.end();
      if (String(request.headers['x-request-id']).startsWith(USER_ID)) {
        return answerUser(request, response);
      }
      const arrival = noteArrival(request, response, () => cuts > 0);
      arrivals.push(arrival);
      void answerLater(request, response, { arrival, tries });
    });
    return new Promise((resolve) => opened.listen(at, '127.0.0.1', () => resolve(opened)));
  }

  function close(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  return {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    cut: async (forMs) => {
      if (cuts++ === 0) closed = close();
      await new Promise((resolve) => setTimeout(resolve, forMs));
      await closed;
      if (--cuts === 0) server = await listen(port);
    },
    lateness,
    close: () => {
      lateness.close();
      return close();
    },
  };
}

/** Streams the answer to a user, one event after the other. */
function answerUser(request: IncomingMessage, response: ServerResponse): void {
  const index = Number(String(request.headers['x-request-id']).slice(USER_ID.length));
  const events = userEvents(index);
  request.resume();
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const timer = setInterval(() => {
    response.write(events.shift() ?? '');
    if (events.length === 0) response.end();
  }, EVENT_MS);
  // Also when it has ended.
  response.once('finish', () => clearInterval(timer));
  response.once('close', () => clearInterval(timer));
}

/** The record of a request; how it ends is noted when it does. */
function noteArrival(
  request: IncomingMessage,
  response: ServerResponse,
  isCut: () => boolean,
): Arrival {
  const arrival: Arrival = {
    lineId: String(request.headers['x-request-id']),
    atMs: Date.now(),
    body: '',
    final: false,
    end: 'open',
    endedAtMs: null,
  };
  response.once('finish', () => noteEnd(arrival, 'answered'));
  response.once('close', () => noteEnd(arrival, isCut() ? 'dropped' : 'aborted'));
  return arrival;
}

function noteEnd(arrival: Arrival, how: Arrival['end']): void {
  if (arrival.end !== 'open') return;
  arrival.end = how;
  arrival.endedAtMs = Date.now();
}

async function answerLater(
  request: IncomingMessage,
  response: ServerResponse,
  { arrival, tries }: { arrival: Arrival; tries: Map<string, number> },
): Promise<void> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return;
  }
  arrival.body = Buffer.concat(chunks).toString();
  const attempt = (tries.get(arrival.lineId) ?? 0) + 1;
  tries.set(arrival.lineId, attempt);
  const placed = lineOfBody(arrival.body);
  setTimeout(() => {
    if (failsFirst(placed, attempt) && placed.line.kind === 'dropped') {
      noteEnd(arrival, 'dropped');
      response.destroy();
    } else answer(response, placed, { attempt, arrival });
  }, placed.line.latencyMs);
}

/** Lines that fail at first do so once; every other one of them twice. */
function failsFirst({ index }: PlacedLine, attempt: number): boolean {
  return attempt <= 1 + (index % 2);
}

function answer(
  response: ServerResponse,
  placed: PlacedLine,
  { attempt, arrival }: { attempt: number; arrival: Arrival },
): void {
  if (placed.line.kind === 'busy' && failsFirst(placed, attempt)) {
    const status = placed.index % 3 === 0 ? 503 : 429;
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"error":{}}');
    return;
  }
  const { status, text, requestId } = finalAnswer(placed);
  arrival.final = status !== 500;
  const named = requestId === null ? {} : { 'x-request-id': requestId };
  response.writeHead(status, { 'content-type': 'application/json', ...named }).end(text);
}
