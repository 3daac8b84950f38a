import { isTooDeep, TOO_DEEP } from './nesting';
import type { TranslationScope } from './scope';
import { isAbsent, type Json, type Values } from './values';

/** A message of a request. `path` is its place, such as `messages[2]`. */
export type ChatMessage =
  | {
      /** `system` and `developer` messages. */
      readonly role: 'system';
      readonly text: string;
      readonly path: string;
    }
  | { readonly role: 'user'; readonly parts: readonly UserPart[]; readonly path: string }
  | {
      readonly role: 'assistant';
      readonly text: string | null;
      readonly toolCalls: readonly ToolCall[];
      readonly path: string;
    }
  | {
      readonly role: 'tool';
      readonly toolCallId: string;
      readonly text: string;
      readonly path: string;
    };

/** A part of a user's message. `path` is its place, such as `messages[2].content[0].image_url`. */
export type UserPart =
  | { readonly kind: 'text'; readonly text: string; readonly path: string }
  | { readonly kind: 'image'; readonly image: GivenImage; readonly path: string }
  | {
      readonly kind: 'audio';
      /** Base64. */
      readonly data: string;
      /** `wav` or `mp3`. */
      readonly format: string;
      readonly path: string;
    }
  | { readonly kind: 'file'; readonly path: string };

/** An image by its address, or with its bytes in base64. */
export type GivenImage =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'data'; readonly mediaType: string; readonly data: string };

/** A call of a function that the model has made. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Json;
}

const DATA_URL = /^data:([^;,]+);base64,([\s\S]*)$/;

/** Reads `messages`. Texts of several parts are joined by line breaks where a format has one text. */
export function readMessages(
  value: unknown,
  values: Values,
  scope: TranslationScope,
): readonly ChatMessage[] {
  const reader = new MessageReader(values, scope);
  const messages = values.array(value, 'messages');
  if (messages.length === 0) scope.refuse('messages', 'expected at least one message');
  return messages.map((one, i) => reader.read(one, `messages[${i}]`));
}

class MessageReader {
  readonly #values: Values;
  readonly #scope: TranslationScope;

  constructor(values: Values, scope: TranslationScope) {
    this.#values = values;
    this.#scope = scope;
  }

  read(value: unknown, path: string): ChatMessage {
    const message = this.#values.object(value, path);
    const { role, content, name } = message;
    if (!isAbsent(name)) this.#scope.drop(`${path}.name`, 'the provider has no such member');
    switch (role) {
      case 'system':
      case 'developer':
        return { role: 'system', text: this.#text(content, path), path };
      case 'user':
        return { role, parts: this.#parts(content, `${path}.content`), path };
      case 'assistant':
        return this.#assistant(message, path);
      case 'tool': {
        const toolCallId = this.#values.text(message['tool_call_id'], `${path}.tool_call_id`);
        return { role, toolCallId, text: this.#text(content, path), path };
      }
      default:
        return this.#scope.refuse(
          `${path}.role`,
          'expected system, developer, user, assistant or tool',
        );
    }
  }

  #assistant(message: Json, path: string): ChatMessage {
    const { content, tool_calls: calls } = message;
    for (const name of ['audio', 'function_call']) {
      if (!isAbsent(message[name])) this.#scope.refuse(`${path}.${name}`, 'cannot be expressed');
    }
    const text = isAbsent(content) ? null : this.#text(content, path);
    const toolCalls = isAbsent(calls)
      ? []
      : this.#values
          .array(calls, `${path}.tool_calls`)
          .map((call, i) => this.#toolCall(call, `${path}.tool_calls[${i}]`));
    if (text === null && toolCalls.length === 0) {
      return this.#scope.refuse(`${path}.content`, 'expected a text or tool calls');
    }
    return { role: 'assistant', text, toolCalls, path };
  }

  #toolCall(value: unknown, path: string): ToolCall {
    const call = this.#values.object(value, path);
    if (call['type'] !== 'function') this.#scope.refuse(`${path}.type`, 'expected a function');
    const given = this.#values.object(call['function'], `${path}.function`);
    const at = `${path}.function.arguments`;
    return {
      id: this.#values.text(call['id'], `${path}.id`),
      name: this.#values.text(given['name'], `${path}.function.name`),
      arguments: this.#arguments(this.#values.text(given['arguments'], at), at),
    };
  }

  #arguments(text: string, path: string): Json {
    let parsed: unknown;
    try {
      parsed = text.trim() === '' ? {} : (JSON.parse(text) as unknown);
    } catch {
      return this.#scope.refuse(path, 'expected JSON');
    }
    if (isTooDeep(parsed)) return this.#scope.refuse(path, TOO_DEEP);
    return this.#values.object(parsed, path);
  }

  /** The text of a message whose parts can only be text. */
  #text(content: unknown, path: string): string {
    const parts = this.#parts(content, `${path}.content`);
    return parts
      .map((part) =>
        part.kind === 'text' ? part.text : this.#scope.refuse(part.path, 'expected text'),
      )
      .join('\n');
  }

  #parts(content: unknown, path: string): readonly UserPart[] {
    if (typeof content === 'string') return [{ kind: 'text', text: content, path }];
    return this.#values.array(content, path).map((one, i) => this.#part(one, `${path}[${i}]`));
  }

  #part(value: unknown, path: string): UserPart {
    const part = this.#values.object(value, path);
    const { type } = part;
    switch (type) {
      case 'text':
      case 'refusal':
        return { kind: 'text', text: this.#values.text(part[type], `${path}.${type}`), path };
      case 'image_url': {
        const at = `${path}.image_url`;
        const url = this.#values.text(this.#values.object(part[type], at)['url'], `${at}.url`);
        return { kind: 'image', image: imageOf(url), path: at };
      }
      case 'input_audio': {
        const at = `${path}.input_audio`;
        const audio = this.#values.object(part[type], at);
        const data = this.#values.text(audio['data'], `${at}.data`);
        const format = this.#values.text(audio['format'], `${at}.format`);
        return { kind: 'audio', data, format, path: at };
      }
      case 'file':
        return { kind: 'file', path: `${path}.file` };
      default:
        return this.#scope.refuse(`${path}.type`, 'cannot be expressed');
    }
  }
}

function imageOf(url: string): GivenImage {
  const [, mediaType, data] = DATA_URL.exec(url) ?? [];
  if (mediaType === undefined || data === undefined) return { kind: 'url', url };
  return { kind: 'data', mediaType, data };
}
