import { isJsonObject } from '../../core/openai/json-object';
import type { ChatMessage, UserPart } from '../chat/messages';
import { isTooDeep } from '../chat/nesting';
import type { TranslationScope } from '../chat/scope';
import { turnsOf, type Turn } from '../chat/turns';
import type { Json } from '../chat/values';

type Role = 'user' | 'model';

interface Content {
  readonly role: Role;
  readonly parts: readonly Json[];
}

/** `contents`: the other messages. */
export function contentsOf(
  messages: readonly ChatMessage[],
  scope: TranslationScope,
): readonly Content[] {
  const names = callNames(messages);
  const turns = turnsOf(messages, scope, (message) => contentOf(message, names, scope));
  return turns.map(({ role, blocks }) => ({ role, parts: blocks }));
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
): Turn<Role> | null {
  switch (message.role) {
    case 'system':
      return null;
    case 'user':
      return { role: 'user', blocks: message.parts.map((part) => userPartOf(part, scope)) };
    case 'assistant': {
      const { text, toolCalls } = message;
      const calls = toolCalls.map((call) => ({
        functionCall: { name: call.name, args: call.arguments },
      }));
      const hasText = text !== null && (text !== '' || calls.length === 0);
      return { role: 'model', blocks: [...(hasText ? [{ text }] : []), ...calls] };
    }
    case 'tool': {
      const at = `${message.path}.tool_call_id`;
      const name = names.get(message.toolCallId) ?? scope.refuse(at, 'no call has this id');
      const functionResponse = { name, response: responseOf(message.text) };
      return { role: 'user', blocks: [{ functionResponse }] };
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

/** Google wants an object. A text that is none, or one too deep to be written again, is its `output`. */
function responseOf(text: string): Json {
  try {
    const value = JSON.parse(text) as unknown;
    if (isTooDeep(value)) return { output: text };
    return isJsonObject(value) ? value : { output: value };
  } catch {
    return { output: text };
  }
}
