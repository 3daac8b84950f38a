import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as the model server saw it. */
export interface Seen {
  /** `x-request-id`: the line's id. */
  readonly requestId: string;
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly atMs: number;
  /** Local port of the connection that the sender used. */
  readonly port: number;
  /** Whether its answer was written out whole. */
  answered: boolean;
}

export interface RecordingBackend {
  readonly url: string;
  readonly seen: Seen[];
  /** Latency of every answer from now on. */
  latencyMs: number;
  /** Latency of one request; null: that of every answer. */
  latencyOf: (seen: Seen) => number | null;
  /** Whether an answer that is due must wait longer; evaluated every 20 ms. */
  hold: (seen: Seen) => boolean;
  /** Status and body for a request; null for the ordinary answer. */
  judge: (seen: Seen) => { status: number; body: string } | null;
  inFlight(): number;
  close(): Promise<void>;
}

const HOLD_AGAIN_MS = 20;
/** The longest way of a request from process to process on a busy machine. */
const TRANSIT_MS = 2_000;

/**
 * Requests that were sent after `deadlineMs`. The time left in their headers decides, because a request
 * that was sent just before the deadline may arrive after it.
 */
export function sentAfter(deadlineMs: number, seen: readonly Seen[]): Seen[] {
  return seen.filter(
    ({ atMs, headers }) =>
      atMs > deadlineMs && (headers['x-slo-ttft-ms'] === '0' || atMs > deadlineMs + TRANSIT_MS),
  );
}

/** A model server that records every request, when it came, and whether it was answered. */
export async function startRecordingBackend(latencyMs = 0): Promise<RecordingBackend> {
  const seen: Seen[] = [];
  let inFlight = 0;
  const backend = {
    seen,
    latencyMs,
    latencyOf: (() => null) as RecordingBackend['latencyOf'],
    hold: (() => false) as RecordingBackend['hold'],
    judge: (() => null) as RecordingBackend['judge'],
  };
  const server: Server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    // The probe of a gateway.
    if (request.method === 'GET') return void response.end();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const entry: Seen = {
        requestId: String(request.headers['x-request-id']),
        path: request.url ?? '',
        body: Buffer.concat(chunks).toString(),
        headers: request.headers,
        atMs: Date.now(),
        port: request.socket.remotePort ?? 0,
        answered: false,
      };
      seen.push(entry);
      inFlight++;
      const answer = (): void => {
        const isLeft = request.socket.destroyed;
        if (!isLeft && backend.hold(entry)) return void setTimeout(answer, HOLD_AGAIN_MS);
        inFlight--;
        const reply = backend.judge(entry) ?? { status: 200, body: echo(entry) };
        response.on('finish', () => (entry.answered = true));
        response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body);
      };
      setTimeout(answer, backend.latencyOf(entry) ?? backend.latencyMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(backend, {
    url: `http://127.0.0.1:${port}`,
    inFlight: () => inFlight,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

/** An answer that is a pure function of the request: the same request, the same bytes. */
function echo(seen: Seen): string {
  return JSON.stringify({
    id: `cmpl-${seen.requestId}`,
    object: 'chat.completion',
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: `received ${seen.body.length} bytes` } },
    ],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  });
}
