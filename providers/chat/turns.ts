import type { ChatMessage } from './messages';
import type { TranslationScope } from './scope';
import type { Json } from './values';

/** A message in the form of vendors whose messages are lists of blocks. */
export interface Turn<Role extends string> {
  readonly role: Role;
  readonly blocks: readonly Json[];
}

/**
 * The messages besides system messages, as turns of the two sides. Neighbours of one role are joined, because vendors want
 * the roles in turn, and the results of parallel calls in one message.
 * @param turnOf null for a message that is said elsewhere
 */
export function turnsOf<Role extends string>(
  messages: readonly ChatMessage[],
  scope: TranslationScope,
  turnOf: (message: ChatMessage) => Turn<Role> | null,
): readonly Turn<Role>[] {
  const turns: Turn<Role>[] = [];
  for (const message of messages) {
    const turn = turnOf(message);
    if (turn === null) continue;
    const last = turns.at(-1);
    if (last?.role !== turn.role) turns.push(turn);
    else turns.splice(-1, 1, { ...last, blocks: [...last.blocks, ...turn.blocks] });
  }
  if (turns.length === 0) scope.refuse('messages', 'expected a message besides system messages');
  return turns;
}
