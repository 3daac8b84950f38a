import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Transcription, usageBody } from '../../core/audio/transcription';
import { toHeaderText } from '../../core/openai/tenant-name';
import { responseHeaders } from '../../http/context/response-headers';
import type { ErrorBody } from '../../http/errors/error-envelope';

/**
 * The answer to a transcription with `stream=true`, as server-sent events
 * (docs/design/audio.md#streamed-transcripts). The head goes out with the first event, so an earlier error keeps its
 * status.
 */
export class TranscriptEvents {
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  #hasBegun = false;
  #hasDelta = false;
  /** Text that waits for a client that reads slowly. */
  #pending = '';

  constructor(request: FastifyRequest, reply: FastifyReply) {
    this.#request = request;
    this.#reply = reply;
  }

  /** Whether the head is sent. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Sends the head. @param queueMs time in the queue */
  begin(queueMs: number): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { raw } = this.#reply.hijack();
    const { id, tenant, arrivedAtMs } = this.#request;
    const tookMs = Math.round(performance.now() - arrivedAtMs);
    raw.writeHead(200, {
      ...responseHeaders(id, toHeaderText(tenant), tookMs),
      'content-type': 'text/event-stream; charset=utf-8',
      'server-timing': `queue;dur=${Math.round(queueMs)}`,
    });
    raw.on('drain', () => this.#flush());
  }

  /** Sends a piece of the text. While the client does not read, pieces are joined. */
  delta(text: string): void {
    this.#hasDelta = true;
    this.#pending += text;
    if (!this.#reply.raw.writableNeedDrain) this.#flush();
  }

  /** Ends the answer. A transcript without pieces is sent as one. */
  done(transcription: Transcription): void {
    const { text } = transcription;
    if (!this.#hasDelta) this.#pending = text;
    this.#flush();
    this.#send({ type: 'transcript.text.done', text, usage: usageBody(transcription) });
    this.#reply.raw.end('data: [DONE]\n\n');
  }

  /** Ends an answer that cannot be completed. */
  fail(body: ErrorBody): void {
    this.#flush();
    this.#reply.raw.end(`event: error\ndata: ${JSON.stringify(body)}\n\n`);
  }

  #flush(): void {
    if (this.#pending === '' || this.#reply.raw.destroyed) return;
    this.#send({ type: 'transcript.text.delta', delta: this.#pending });
    this.#pending = '';
  }

  #send(event: object): void {
    this.#reply.raw.write(`data: ${JSON.stringify(event)}\n\n`);
  }
}
