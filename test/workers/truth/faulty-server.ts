import { freePort } from '../../support/free-port';
import { startLocalServer, type Answer } from '../../inference/local-server';

/** A model server that answers each line by its fault. */
export interface FaultyServer {
  readonly url: string;
  /** An address on which nothing listens. */
  readonly closedUrl: string;
  /** Lines with the fault `held` that wait for {@link release}. */
  held(): number;
  /** Answers all lines that wait. */
  release(): void;
  close(): Promise<void>;
}

const USAGE = { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 };

/** Faults of the first try of a line; the second one succeeds. */
const ONCE: Readonly<Record<string, Answer>> = {
  rate_limited: (_, response) => void response.writeHead(429).end('{}'),
  paused: (_, response) => void response.writeHead(429, { 'retry-after': '1' }).end('{}'),
  server_error: (_, response) => void response.writeHead(500).end('{}'),
  client_status: (_, response) => void response.writeHead(408).end('{}'),
  dropped: (_, response) =>
    void response.writeHead(503, { 'x-nightshift-dropped': 'shutting_down' }).end('{}'),
  connection: (_, __, socket) => void socket.destroy(),
  timeout: () => undefined,
};

/** Starts the server. `refused` is answered with 400, `held` when the test says so, `ok` at once. */
export async function startFaultyServer(): Promise<FaultyServer> {
  const seen = new Set<string>();
  const held = new Set<() => void>();
  const answer: Answer = (request, response, socket) => {
    const body = JSON.parse(request.body.toString()) as { messages: { content: string }[] };
    const fault = body.messages[0]?.content ?? '';
    const id = String(request.headers['x-request-id']);
    const ok = (): void => void response.end(JSON.stringify({ usage: USAGE }));
    response.setHeader('content-type', 'application/json');
    const once = seen.has(id) ? undefined : ONCE[fault];
    seen.add(id);
    if (once !== undefined) return once(request, response, socket);
    if (fault === 'refused') return void response.writeHead(400).end('{"error":{}}');
    if (fault !== 'held') return ok();
    response.setHeader('server-timing', 'queue;dur=1');
    held.add(ok);
    response.once('close', () => held.delete(ok));
  };
  const server = await startLocalServer(answer);
  return {
    url: server.url,
    closedUrl: `http://127.0.0.1:${await freePort()}`,
    held: () => held.size,
    release: () => held.forEach((ok) => ok()),
    close: () => server.close(),
  };
}
