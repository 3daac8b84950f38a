import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Arrival } from '../checker/evidence';
import { finalAnswer, lineOfBody, type PlacedLine } from './answers';
import type { Lateness } from './lateness';
import { watchLateness } from './lateness';

/** A model server with the latencies and failures that the lines ask for, and a full memory. */
export interface FaultsModelServer {
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Closes every connection and refuses new ones until the promise has resolved. */
  cut(forMs: number): Promise<void>;
  readonly lateness: Lateness;
  close(): Promise<void>;
}

export async function startFaultsModelServer(): Promise<FaultsModelServer> {
  const arrivals: Arrival[] = [];
  const tries = new Map<string, number>();
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const lateness = watchLateness(port);
  /** Cuts that last; a second one that begins meanwhile may end later. */
  let cuts = 0;
  let closed = Promise.resolve();

  function listen(at: number): Promise<Server> {
    const opened = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      void receive(request, response);
    });
    return new Promise((resolve) => opened.listen(at, '127.0.0.1', () => resolve(opened)));
  }

  function close(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (lateness.isProbe(request)) return void response.end();
    const arrival: Arrival = {
      lineId: String(request.headers['x-request-id']),
      atMs: Date.now(),
      body: '',
      final: false,
      end: 'open',
      endedAtMs: null,
    };
    arrivals.push(arrival);
    const end = (how: Arrival['end']): void => {
      if (arrival.end !== 'open') return;
      arrival.end = how;
      arrival.endedAtMs = Date.now();
    };
    response.once('finish', () => end('answered'));
    response.once('close', () => end(cuts > 0 ? 'dropped' : 'aborted'));
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
      if (isMoody(placed, attempt) && placed.line.kind === 'dropped') {
        end('dropped');
        response.destroy();
      } else answer(response, placed, { attempt, arrival });
    }, placed.line.latencyMs);
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

/** The first try of such a line; the second too, for every other one. */
function isMoody({ index }: PlacedLine, attempt: number): boolean {
  return attempt <= 1 + (index % 2);
}

function answer(
  response: ServerResponse,
  placed: PlacedLine,
  { attempt, arrival }: { attempt: number; arrival: Arrival },
): void {
  if (placed.line.kind === 'busy' && isMoody(placed, attempt)) {
    const status = placed.index % 3 === 0 ? 503 : 429;
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"error":{}}');
    return;
  }
  const { status, text, requestId } = finalAnswer(placed);
  arrival.final = status !== 500;
  const named = requestId === null ? {} : { 'x-request-id': requestId };
  response.writeHead(status, { 'content-type': 'application/json', ...named }).end(text);
}
