import type { ChatMessage } from './messages';
import type { TranslationScope } from './scope';

/**
 * All system and developer messages as one text, with blank lines between them; null without one. Formats that have
 * a member for it take them first. One that follows other messages would move to the front, so it is refused unless
 * the line may be changed.
 */
export function systemTextOf(
  messages: readonly ChatMessage[],
  scope: TranslationScope,
): string | null {
  const texts: string[] = [];
  let hasOthers = false;
  for (const message of messages) {
    if (message.role !== 'system') hasOthers = true;
    else {
      if (hasOthers) scope.drop(message.path, 'the provider takes system messages first');
      texts.push(message.text);
    }
  }
  return texts.length === 0 ? null : texts.join('\n\n');
}
