import type { BatchPlan, LinePlan } from './plan';

/** The final answer of the model server to a line: a pure function of the line. */
export interface FinalAnswer {
  readonly status: number;
  /** The bytes on the wire, with blanks and non-ASCII letters. */
  readonly text: string;
  /** The server's own request id; null if it sends none. */
  readonly requestId: string | null;
}

/** Tokens that a successful answer reports. */
export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** A line and its position in the batch, which its body contains too. */
export interface PlacedLine {
  readonly line: LinePlan;
  readonly index: number;
}

/** The body of a request, which tells the model server how to answer it. */
export function requestBody({ line, index }: PlacedLine): string {
  const { customId, model, kind, latencyMs } = line;
  const messages = [{ role: 'user', content: `Frage ${index} über ${customId} 漢` }];
  const metadata = { kind, index: String(index), latency: String(latencyMs), customId };
  // With blanks that no serializer of ours writes, to check that the body arrives byte for byte.
  return `{ "model":"${model}",  "messages": ${JSON.stringify(messages)},"metadata":${JSON.stringify(metadata)} }`;
}

/** The reverse of {@link requestBody}. */
export function lineOfBody(body: string): PlacedLine {
  const { model, metadata } = JSON.parse(body) as {
    model: string;
    metadata: { kind: LinePlan['kind']; index: string; latency: string; customId: string };
  };
  const { kind, customId } = metadata;
  const line = { customId, model, kind, latencyMs: Number(metadata.latency) };
  return { line, index: Number(metadata.index) };
}

/** The input file of a batch. */
export function inputText(batch: BatchPlan): string {
  return batch.lines
    .map((line, index) => {
      const body = requestBody({ line, index });
      return `{"custom_id":"${line.customId}","method":"POST","url":"/v1/chat/completions","body":${body}}\n`;
    })
    .join('');
}

export function tokensOf({ index }: PlacedLine): Tokens {
  return { input: 5 + (index % 7), cached: index % 3, output: 1 + (index % 11) };
}

export function finalAnswer(placed: PlacedLine): FinalAnswer {
  const { line, index } = placed;
  const requestId = index % 3 === 0 ? `up-${line.customId}` : null;
  if (line.kind === 'refused') {
    return { status: 400, text: failure(`${line.customId} is refused`, 'bad'), requestId };
  }
  if (line.kind === 'broken') return { status: 500, text: failure('broken', 'oops'), requestId };
  const { input, cached, output } = tokensOf(placed);
  const usage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  };
  const answer = {
    id: `cmpl-${line.customId}`,
    model: line.model,
    choices: [{ index: 0, message: { role: 'assistant', content: `Antwort für ${index} 😀` } }],
    usage,
  };
  return { status: 200, text: JSON.stringify(answer, null, index % 4), requestId };
}

/** How ids of requests of users begin; those of lines begin with `batch_req_`. */
export const USER_ID = 'user-';

/** The body of a user's call. */
export function userBody(index: number): string {
  const messages = [{ role: 'user', content: `user ${index}` }];
  return JSON.stringify({ model: 'alpha', stream: true, messages, user: String(index) });
}

/** The events of the answer to a user: a pure function of the number of the call. */
export function userEvents(index: number): string[] {
  const events = Array.from({ length: 2 + (index % 6) }, (_, i) =>
    JSON.stringify({ choices: [{ index: 0, delta: { content: `Wort ${index}.${i} 漢` } }] }),
  );
  return [...events, '[DONE]'].map((data) => `data: ${data}\n\n`);
}

/** The body of the answer to a user. */
export function userAnswer(index: number): string {
  return userEvents(index).join('');
}

function failure(message: string, code: string): string {
  return JSON.stringify({ error: { message, type: 'server_error', param: null, code } });
}
