/** What an answer says: one choice of a `chat.completion`. */
export interface ChatAnswer {
  readonly id: string;
  /** Unix s. */
  readonly created: number;
  readonly model: string;
  /** Joined text; null if the answer has tool calls only. */
  readonly content: string | null;
  readonly refusal?: string | null;
  readonly reasoning: string | null;
  readonly toolCalls: readonly AnsweredCall[];
  readonly finishReason: FinishReason;
  readonly usage: ChatUsage;
}

/** A call that the model asks for. */
export interface AnsweredCall {
  readonly id: string;
  readonly name: string;
  /** Any JSON value. */
  readonly arguments: unknown;
}

/** Why the answer ends. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** Tokens of one answer. */
export interface ChatUsage {
  readonly prompt: number;
  /** Of the prompt, read from a cache. */
  readonly cached: number;
  readonly completion: number;
  /** Of the completion; null if the vendor does not say. */
  readonly reasoning: number | null;
}

/** The body of a `chat.completion` (https://platform.openai.com/docs/api-reference/chat/object). */
export function chatCompletion(answer: ChatAnswer): Buffer {
  const { id, created, model, finishReason, usage } = answer;
  const { prompt, cached, completion, reasoning } = usage;
  const details = reasoning === null ? {} : { reasoning_tokens: reasoning };
  return json({
    ...{ id, object: 'chat.completion', created, model },
    choices: [
      { index: 0, message: messageOf(answer), logprobs: null, finish_reason: finishReason },
    ],
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: details,
    },
  });
}

/** An error body of OpenAI. The text is ours: a provider's own may name an organization. */
export function chatError(error: {
  readonly type: string;
  readonly message: string;
  readonly code: string | null;
}): Buffer {
  const { message, type, code } = error;
  return json({ error: { message, type, param: null, code } });
}

function messageOf({ content, refusal = null, reasoning, toolCalls }: ChatAnswer): object {
  const calls = toolCalls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments ?? {}) },
  }));
  return {
    ...{ role: 'assistant', content, refusal },
    ...(reasoning === null ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}
