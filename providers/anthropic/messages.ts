import type { ChatMessage, GivenImage, ToolCall, UserPart } from '../chat/messages';
import type { TranslationScope } from '../chat/scope';
import { turnsOf, type Turn } from '../chat/turns';
import type { Json } from '../chat/values';

type Role = 'user' | 'assistant';

interface Message {
  readonly role: Role;
  readonly content: readonly Json[];
}

/** Media types of images with bytes (https://platform.claude.com/docs/en/build-with-claude/vision). */
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
const ADDRESS = /^https?:\/\//i;

/** `messages` of the Messages API: all but system messages. */
export function messagesOf(
  messages: readonly ChatMessage[],
  scope: TranslationScope,
): readonly Message[] {
  const turns = turnsOf(messages, scope, (message) => turnOf(message, scope));
  return turns.map(({ role, blocks }) => ({ role, content: blocks }));
}

function turnOf(message: ChatMessage, scope: TranslationScope): Turn<Role> | null {
  switch (message.role) {
    case 'system':
      return null;
    case 'user':
      return { role: 'user', blocks: message.parts.map((part) => userBlock(part, scope)) };
    case 'assistant': {
      const { text, toolCalls } = message;
      // Anthropic refuses empty texts, which OpenAI's clients send beside tool calls.
      const hasText = text !== null && (text !== '' || toolCalls.length === 0);
      const texts = hasText ? [{ type: 'text', text }] : [];
      return { role: 'assistant', blocks: [...texts, ...toolCalls.map(toolUse)] };
    }
    case 'tool': {
      const { toolCallId, text } = message;
      const result = { type: 'tool_result', tool_use_id: toolCallId, content: text };
      return { role: 'user', blocks: [result] };
    }
  }
}

function userBlock(part: UserPart, scope: TranslationScope): Json {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
      return { type: 'image', source: imageSource(part.image, `${part.path}.url`, scope) };
    case 'audio':
    case 'file':
      return scope.refuse(part.path, 'the provider takes text and images');
  }
}

function imageSource(image: GivenImage, path: string, scope: TranslationScope): Json {
  if (image.kind === 'url') {
    if (!ADDRESS.test(image.url)) scope.refuse(path, 'expected an http or base64 data: URL');
    return { type: 'url', url: image.url };
  }
  if (!IMAGE_TYPES.includes(image.mediaType)) {
    scope.refuse(path, `expected one of ${IMAGE_TYPES.join(', ')}`);
  }
  return { type: 'base64', media_type: image.mediaType, data: image.data };
}

function toolUse({ id, name, arguments: input }: ToolCall): Json {
  return { type: 'tool_use', id, name, input };
}
