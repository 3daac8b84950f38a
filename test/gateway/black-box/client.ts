import { type IncomingMessage, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { until } from '../../support/until';
import { onClose } from './cleanup';

const WAIT_MS = 10_000;
const POLL_MS = 2;

export type Json = Readonly<Record<string, unknown>>;
export type Fields = Readonly<Record<string, string>>;

/** An answer, read to its end. */
export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly bytes: Buffer;
  readonly text: string;
  /** From the sending of the request to the end of the answer. */
  readonly afterMs: number;
}

/** A request on a connection of its own. */
export class Asked {
  /** Resolves with the head of the answer. */
  readonly head: Promise<IncomingMessage>;
  readonly answer: Promise<Answered>;
  readonly interim: number[] = [];
  private readonly chunks: Buffer[] = [];
  private readonly request;

  constructor(port: number, model: string, name: string, fields: Fields, body: Json | Buffer) {
    const startedAt = performance.now();
    this.request = httpRequest({
      ...{ port, host: '127.0.0.1', path: '/v1/chat/completions', method: 'POST', agent: false },
      headers: { 'content-type': 'application/json', 'x-request-id': name, ...fields },
    });
    this.request.on('information', ({ statusCode }) => this.interim.push(statusCode));
    this.head = new Promise((done, fail) => {
      this.request.once('response', done).once('error', fail);
    });
    this.answer = this.head.then((response) => this.read(response, startedAt));
    // A request that a test gives up is not a failure of the test.
    this.answer.catch(() => undefined);
    this.request.end(
      Buffer.isBuffer(body) ? body : JSON.stringify({ model, messages: [], ...body }),
    );
    onClose(() => this.hangUp());
  }

  hangUp(): void {
    this.request.destroy();
  }

  /** What has arrived of the answer's body so far. */
  text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  private async read(response: IncomingMessage, startedAt: number): Promise<Answered> {
    for await (const chunk of response) this.chunks.push(chunk as Buffer);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      rawHeaders: response.rawHeaders,
      bytes: Buffer.concat(this.chunks),
      text: this.text(),
      afterMs: performance.now() - startedAt,
    };
  }
}

/** What the gateway says in an answer of its own. */
export async function refusal(asked: Asked): Promise<Record<string, unknown>> {
  const { status, headers, text } = await asked.answer;
  const { error } = JSON.parse(text) as { error: { code: string | null } };
  return {
    status,
    code: error.code,
    dropped: headers['x-nightshift-dropped'] ?? null,
    reason: headers['x-llm-d-request-dropped-reason'] ?? null,
    mayRetry: headers['retry-after'] === undefined ? null : isWait(headers['retry-after']),
  };
}

/** What `refusal` must be for a request that was dropped. */
export function dropped(
  code: string,
  reason: string | null,
  status = 503,
): Record<string, unknown> {
  return { status, code, dropped: code, reason, mayRetry: true };
}

/** Whether a `Retry-After` is a whole number of seconds from 1 to 60. */
function isWait(text: string): boolean {
  return /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 60;
}

/** A raw connection. */
export class Wire {
  readonly socket: Socket;
  isClosed = false;
  private readonly chunks: Buffer[] = [];

  constructor(port: number, bytes: string | Buffer) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (chunk) => this.chunks.push(chunk));
    this.socket.on('close', () => (this.isClosed = true));
    this.socket.on('error', () => undefined);
    this.socket.write(bytes);
    onClose(() => void this.socket.destroy());
  }

  bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  text(): string {
    return this.bytes().toString('latin1');
  }

  /** Waits until what it received satisfies a condition, and returns it. */
  async reads(what: string, isRead: (text: string) => boolean): Promise<string> {
    const isSo = () => isRead(this.text());
    await until(isSo, WAIT_MS, what, POLL_MS).catch((error: Error) => {
      throw new Error(
        `${error.message}; the connection has ${JSON.stringify(this.text().slice(0, 300))}`,
      );
    });
    return this.text();
  }

  /** Waits for the first line of an answer and returns its status. */
  async status(): Promise<number> {
    return Number((await this.reads('a status', (text) => text.includes('\r\n'))).split(' ')[1]);
  }
}
