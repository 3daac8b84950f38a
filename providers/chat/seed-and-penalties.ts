import type { ChatRequest } from './request';
import type { TranslationScope } from './scope';

/** Drops `seed` and the penalties, for formats that have no such members. With the value 0 they say nothing. */
export function dropSeedAndPenalties(
  { seed, presencePenalty, frequencyPenalty }: ChatRequest,
  scope: TranslationScope,
): void {
  const members = {
    seed,
    presence_penalty: presencePenalty,
    frequency_penalty: frequencyPenalty,
  };
  for (const [param, value] of Object.entries(members)) {
    if (value !== null && value !== 0) scope.drop(param, 'the provider has no such member');
  }
}
