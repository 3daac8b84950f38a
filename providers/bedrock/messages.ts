import type { ChatMessage, GivenImage, UserPart } from '../chat/messages';
import type { TranslationScope } from '../chat/scope';
import { turnsOf, type Turn } from '../chat/turns';
import type { Json } from '../chat/values';

type Role = 'user' | 'assistant';

interface Message {
  readonly role: Role;
  readonly content: readonly Json[];
}

/** Converse's names of media types: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ImageBlock.html. */
const IMAGE_FORMATS: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpeg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
]);

/** `messages` of Converse: all but system messages. */
export function messagesOf(
  messages: readonly ChatMessage[],
  scope: TranslationScope,
): readonly Message[] {
  const turns = turnsOf(messages, scope, (message) => turnOf(message, scope));
  return turns.map(({ role, blocks }) => ({ role, content: blocks }));
}

function turnOf(message: ChatMessage, scope: TranslationScope): Turn<Role> | null {
  const { path } = message;
  switch (message.role) {
    case 'system':
      return null;
    case 'user':
      return { role: 'user', blocks: message.parts.map((part) => userBlock(part, scope)) };
    case 'assistant': {
      const { text, toolCalls } = message;
      if (toolCalls.length > 0) scope.refuse(`${path}.tool_calls`, NO_TOOLS);
      return { role: 'assistant', blocks: [{ text: text ?? '' }] };
    }
    case 'tool':
      return scope.refuse(path, NO_TOOLS);
  }
}

/** Why anything about tools is refused: a record with them fails, and without them it would mean something else. */
export const NO_TOOLS = 'the provider has no tools in batches';

function userBlock(part: UserPart, scope: TranslationScope): Json {
  switch (part.kind) {
    case 'text':
      return { text: part.text };
    case 'image':
      return { image: imageOf(part.image, `${part.path}.url`, scope) };
    case 'audio':
    case 'file':
      return scope.refuse(part.path, 'the provider takes text and images');
  }
}

function imageOf(image: GivenImage, path: string, scope: TranslationScope): Json {
  if (image.kind === 'url') return scope.refuse(path, 'expected a base64 data: URL');
  const format = IMAGE_FORMATS.get(image.mediaType);
  if (format === undefined) {
    return scope.refuse(path, `expected one of ${[...IMAGE_FORMATS.keys()].join(', ')}`);
  }
  return { format, source: { bytes: image.data } };
}
