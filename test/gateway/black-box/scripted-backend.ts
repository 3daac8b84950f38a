import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { onClose } from './cleanup';

const WAIT_MS = 10_000;
const POLL_MS = 2;
type Json = Readonly<Record<string, unknown>>;

/** A request that a scripted backend holds. */
export interface HeldRequest {
  /** Its `x-request-id`. */
  readonly name: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

export type Script = (held: HeldRequest) => void;

/** A model server that holds every request until the test answers it, unless it has a script. */
export class ScriptedBackend {
  readonly held: HeldRequest[] = [];
  /** Names of all requests, in the order in which they came. */
  readonly came: string[] = [];
  /** Requests whose connection was closed before they were answered. */
  readonly aborted: string[] = [];
  script: Script | null = null;
  health = 200;
  private server = createServer();

  private readonly port: number;

  private constructor(port: number) {
    this.port = port;
  }

  static async start(script: Script | null = null): Promise<ScriptedBackend> {
    const backend = new ScriptedBackend(await freePort());
    backend.script = script;
    await backend.listen();
    onClose(() => backend.close());
    return backend;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Listens, for the first time or again, at the same port. */
  async listen(): Promise<void> {
    this.server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      void this.onRequest(request, response);
    });
    this.server.maxHeadersCount = 0;
    await new Promise<void>((done) => this.server.listen(this.port, '127.0.0.1', done));
  }

  /** Refuses connections from now on, and closes those it has. */
  async close(): Promise<void> {
    if (!this.server.listening) return;
    await new Promise((done) => {
      this.server.close(done);
      this.server.closeAllConnections();
    });
  }

  private async onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/health') return void response.writeHead(this.health).end();
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const name = String(request.headers['x-request-id']);
    const held = { name, request, response, body: Buffer.concat(chunks) };
    response.on('close', () => {
      if (response.writableFinished) return;
      this.aborted.push(name);
      const index = this.held.indexOf(held);
      if (index >= 0) this.held.splice(index, 1);
    });
    this.came.push(name);
    if (this.script === null) this.held.push(held);
    else this.script(held);
  }

  /** Answers the oldest request it holds, or the one with this name. */
  respond(name?: string, body: Json = answerOf(1, 1)): void {
    const index = name === undefined ? 0 : this.held.findIndex((one) => one.name === name);
    const [held] = this.held.splice(index, 1);
    if (index < 0 || held === undefined)
      throw new Error(`the backend holds no ${name ?? 'request'}`);
    held.response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  /** Waits until it holds so many requests. */
  async holds(count: number): Promise<void> {
    await until(() => this.held.length === count, WAIT_MS, `${count} held requests`, POLL_MS);
  }

  /** Answers one request after the other until so many have come, and returns their names in the order they came. */
  async serveOneByOne(count: number): Promise<string[]> {
    const first = this.came.length;
    while (this.came.length < first + count) {
      const now = this.came.length;
      this.respond();
      await until(() => this.came.length > now, WAIT_MS, `request ${now - first + 1}`, POLL_MS);
    }
    return this.came.slice(first);
  }

  /** Answers all that it holds and all that comes, until `isDone`. */
  async drain(isDone: () => boolean | Promise<boolean>): Promise<void> {
    await until(
      () => {
        while (this.held.length > 0) this.respond();
        return isDone();
      },
      WAIT_MS,
      'the end of all requests',
      POLL_MS,
    );
  }
}

/** An answer whose usage is so many tokens. */
export function answerOf(input: number, output: number): Json {
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  return { id: 'a', object: 'chat.completion', choices: [], usage };
}
