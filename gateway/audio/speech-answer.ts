import type { FastifyReply, FastifyRequest } from 'fastify';
import { toHeaderText } from '../../core/openai/tenant-name';
import { responseHeaders } from '../../http/context/response-headers';
import type { ErrorBody } from '../../http/errors/error-envelope';
import type { WireUsage } from '../../proto/audio-messages';
import { SPEECH_TYPES, type SpeechWanted } from './speech-request';

/**
 * The answer to a speech request, as bytes or as server-sent events (docs/design/audio.md#speech). The head goes out
 * with the first piece, so an earlier error keeps its status.
 */
export class SpeechAnswer {
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #wanted: SpeechWanted;
  #hasBegun = false;

  constructor(request: FastifyRequest, reply: FastifyReply, wanted: SpeechWanted) {
    this.#request = request;
    this.#reply = reply;
    this.#wanted = wanted;
  }

  /** Whether the head is sent. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Sends a piece. The promise settles when the client has room for another one, or is gone. */
  send(audio: Buffer, queueMs: number): void | Promise<void> {
    if (audio.length === 0) return undefined;
    this.#begin(queueMs);
    const { raw } = this.#reply;
    const event = { type: 'speech.audio.delta', audio: audio.toString('base64') };
    if (raw.write(this.#wanted.isEvents ? eventText(event) : audio)) return undefined;
    return new Promise((resolve) => {
      const go = (): void => {
        raw.off('drain', go).off('close', go);
        resolve();
      };
      raw.on('drain', go).on('close', go);
    });
  }

  /** Ends a complete answer. */
  end(usage: WireUsage | null, audioSec: number): void {
    const done = { type: 'speech.audio.done', usage: usageBody(usage, audioSec) };
    this.#reply.raw.end(this.#wanted.isEvents ? eventText(done) : undefined);
  }

  /** Ends an answer that cannot be completed: bytes are cut, so that they do not look complete. */
  fail(body: ErrorBody): void {
    const { raw } = this.#reply;
    if (this.#wanted.isEvents) raw.end(`event: error\n${eventText(body)}`);
    else raw.destroy();
  }

  #begin(queueMs: number): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { raw } = this.#reply.hijack();
    const { id, tenant, arrivedAtMs } = this.#request;
    const tookMs = Math.round(performance.now() - arrivedAtMs);
    const { isEvents, format } = this.#wanted;
    raw.writeHead(200, {
      ...responseHeaders(id, toHeaderText(tenant), tookMs),
      'content-type': isEvents ? 'text/event-stream; charset=utf-8' : SPEECH_TYPES[format],
      'server-timing': `queue;dur=${Math.round(queueMs)}`,
    });
  }
}

function eventText(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** OpenAI counts tokens; a worker that does not states seconds. */
function usageBody(usage: WireUsage | null, audioSec: number): object {
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
  const total = inputTokens + outputTokens;
  if (total === 0) return { type: 'duration', seconds: Math.ceil(usage?.audioSeconds || audioSec) };
  return { input_tokens: inputTokens, output_tokens: outputTokens, total_tokens: total };
}
