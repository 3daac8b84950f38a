import { fnv32a } from '../../core/names/fnv';
import { promptText } from '../prompt';
import { invalid, type ModelRequest } from '../request';
import { nextNumber } from '../words';
import type { Generation } from './generation';
import { hexOf, isListOfText } from './output';

const MODERATION_CATEGORIES = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
];

/** Answers `/v1/moderations`. Flags nothing. The scores are small and depend only on the text. */
export function moderation(request: ModelRequest): Generation {
  const { input } = request.body;
  if (input === undefined || input === null) throw invalid('input', 'input is required');
  const items: readonly unknown[] = isListOfText(input) ? input : [input];
  const results = items.map((item) => {
    let state = fnv32a(Buffer.from(JSON.stringify(item)));
    const score = (): number => (state = nextNumber(state)) / 2 ** 32 / 100;
    return {
      flagged: false,
      categories: Object.fromEntries(MODERATION_CATEGORIES.map((name) => [name, false])),
      category_scores: Object.fromEntries(MODERATION_CATEGORIES.map((name) => [name, score()])),
    };
  });
  const body = { id: `modr-${hexOf(request.seed)}`, model: request.model, results };
  return {
    promptTokens: 0,
    promptText: () => promptText(input),
    estimatedCachedTokens: 0,
    outputTokens: 0,
    finish: 'stop',
    stream: null,
    body: () => body,
  };
}
