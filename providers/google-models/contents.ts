import { isJsonObject } from '../../core/openai/json-object';
import type { ChatMessage, UserPart } from '../chat/messages';
import type { TranslationScope } from '../chat/scope';
import type { Json } from '../chat/values';

interface Content {
  readonly role: 'user' | 'model';
  readonly parts: readonly Json[];
}

/** `contents`: the other messages. Neighbours of one role are joined, as Google wants the roles in turn. */
export function contentsOf(
  messages: readonly ChatMessage[],
  scope: TranslationScope,
): readonly Content[] {
  const names = callNames(messages);
  const contents: Content[] = [];
  for (const message of messages) {
    const content = contentOf(message, names, scope);
    if (content === null) continue;
    const last = contents.at(-1);
    if (last?.role !== content.role) contents.push(content);
    else contents.splice(-1, 1, { ...last, parts: [...last.parts, ...content.parts] });
  }
  if (contents.length === 0) scope.refuse('messages', 'expected a message besides system messages');
  return contents;
}

/** The name of each function that was called, by the id of the call. */
function callNames(messages: readonly ChatMessage[]): ReadonlyMap<string, string> {
  const calls = messages.flatMap((one) => (one.role === 'assistant' ? one.toolCalls : []));
  return new Map(calls.map(({ id, name }) => [id, name]));
}

function contentOf(
  message: ChatMessage,
  names: ReadonlyMap<string, string>,
  scope: TranslationScope,
): Content | null {
  switch (message.role) {
    case 'system':
      return null;
    case 'user':
      return { role: 'user', parts: message.parts.map((part) => userPartOf(part, scope)) };
    case 'assistant': {
      const { text, toolCalls } = message;
      const calls = toolCalls.map((call) => ({
        functionCall: { name: call.name, args: call.arguments },
      }));
      const hasText = text !== null && (text !== '' || calls.length === 0);
      return { role: 'model', parts: [...(hasText ? [{ text }] : []), ...calls] };
    }
    case 'tool': {
      const at = `${message.path}.tool_call_id`;
      const name = names.get(message.toolCallId) ?? scope.refuse(at, 'no call has this id');
      const functionResponse = { name, response: responseOf(message.text) };
      return { role: 'user', parts: [{ functionResponse }] };
    }
  }
}

function userPartOf(part: UserPart, scope: TranslationScope): Json {
  switch (part.kind) {
    case 'text':
      return { text: part.text };
    case 'image': {
      const { image, path } = part;
      // Google fetches no addresses, and we do not fetch on behalf of a line.
      if (image.kind === 'url') return scope.refuse(`${path}.url`, 'expected a data: URL');
      return { inlineData: { mimeType: image.mediaType, data: image.data } };
    }
    case 'audio':
      return { inlineData: { mimeType: `audio/${part.format}`, data: part.data } };
    case 'file':
      return scope.refuse(part.path, 'cannot be expressed');
  }
}

/** Google wants an object. A text that is none is its `output`. */
function responseOf(text: string): Json {
  try {
    const value = JSON.parse(text) as unknown;
    return isJsonObject(value) ? value : { output: value };
  } catch {
    return { output: text };
  }
}
