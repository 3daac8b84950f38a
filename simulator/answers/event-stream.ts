import type { ServerResponse } from 'node:http';
import type { StreamOptions } from '../request';
import { WordSequence } from '../words';
import type { Generation, StreamedAnswer } from './generation';

/** What is sent at once is split into at most so many events. */
const MAX_EVENTS_AT_ONCE = 1_000;

/**
 * Sends one answer as server-sent events, in the form of OpenAI: one event for each step of the engine, an
 * event with `finish_reason` for each choice, the usage if it is asked for, and `[DONE]`. While a client reads
 * too slowly nothing is written, and later events have the tokens of several steps, so little is buffered.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #outputTokens: number;
  readonly #stream: StreamedAnswer;
  readonly #includeUsage: boolean;
  #generated = 0;
  #sent = 0;
  #index = 0;
  #sentOfOutput = 0;
  #words: WordSequence | null = null;

  /** Sends the headers. */
  constructor(
    response: ServerResponse,
    { outputTokens }: Generation,
    stream: StreamedAnswer,
    { includeUsage }: StreamOptions,
  ) {
    this.#response = response;
    this.#outputTokens = outputTokens;
    this.#stream = stream;
    this.#includeUsage = includeUsage;
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
    });
    response.flushHeaders();
    response.on('drain', () => this.generated(this.#generated));
  }

  /** Sends the tokens up to the first `tokens` ones, unless the client is behind. */
  generated(tokens: number): void {
    this.#generated = tokens;
    if (this.#response.writableNeedDrain || this.#response.writableEnded) return;
    if (tokens > this.#sent) this.#response.write(this.#eventsUpTo(tokens));
  }

  /** Sends the rest, and ends the response. */
  end(cachedTokens: number): void {
    let text = this.#eventsUpTo(this.#outputTokens);
    if (this.#includeUsage) {
      const usage = this.#stream.usage(cachedTokens);
      text += eventOf({ ...this.#stream.head, choices: [], usage });
    }
    this.#response.end(`${text}data: [DONE]\n\n`);
  }

  #eventsUpTo(tokens: number): string {
    const perEvent = Math.ceil((tokens - this.#sent) / MAX_EVENTS_AT_ONCE);
    let text = '';
    while (this.#sent < tokens) {
      const output = this.#stream.outputs[this.#index];
      if (output === undefined) break;
      if (this.#words === null && this.#stream.opening !== null) {
        text += this.#event(this.#stream.opening(this.#index));
      }
      this.#words ??= new WordSequence(output.seed);
      const left = output.tokens - this.#sentOfOutput;
      const count = Math.min(left, tokens - this.#sent, perEvent);
      text += this.#event(this.#stream.choice(this.#index, this.#words.take(count), null));
      this.#sent += count;
      this.#sentOfOutput += count;
      if (count < left) continue;
      text += this.#event(this.#stream.choice(this.#index, '', output.finish));
      this.#index++;
      this.#sentOfOutput = 0;
      this.#words = null;
    }
    return text;
  }

  #event(choice: unknown): string {
    const usage = this.#includeUsage ? { usage: null } : {};
    return eventOf({ ...this.#stream.head, choices: [choice], ...usage });
  }
}

function eventOf(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
