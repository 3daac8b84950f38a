const UNITS = (
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen ' +
  'sixteen seventeen eighteen nineteen'
).split(' ');
const TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');
const SCALES: ReadonlyMap<string, number> = new Map([
  ['thousand', 1e3],
  ['million', 1e6],
  ['billion', 1e9],
  ['trillion', 1e12],
]);
const IRREGULAR: ReadonlyMap<string, number> = new Map([
  ['first', 1],
  ['second', 2],
  ['third', 3],
  ['fifth', 5],
  ['eighth', 8],
  ['ninth', 9],
  ['twelfth', 12],
]);

const IRREGULAR_VALUES: ReadonlySet<number> = new Set(IRREGULAR.values());

/** What a word is in a number. */
export interface NumberWord {
  readonly kind: 'digit' | 'teen' | 'ten' | 'hundred' | 'scale';
  readonly value: number;
  readonly isOrdinal: boolean;
}

const WORDS: ReadonlyMap<string, NumberWord> = new Map(allWords());

/** What a word, in lower case, is in a number; null for any other word. */
export function numberWord(word: string): NumberWord | null {
  return WORDS.get(word) ?? null;
}

function* allWords(): Generator<[string, NumberWord]> {
  for (const [value, word] of UNITS.entries()) {
    const kind = value < 10 ? 'digit' : 'teen';
    yield [word, { kind, value, isOrdinal: false }];
    if (!IRREGULAR_VALUES.has(value) && value > 0) {
      yield [`${word}th`, { kind, value, isOrdinal: true }];
    }
  }
  for (const [word, value] of IRREGULAR) {
    yield [word, { kind: value < 10 ? 'digit' : 'teen', value, isOrdinal: true }];
  }
  for (const [i, word] of TENS.entries()) {
    const value = (i + 2) * 10;
    yield [word, { kind: 'ten', value, isOrdinal: false }];
    yield [`${word.slice(0, -1)}ieth`, { kind: 'ten', value, isOrdinal: true }];
  }
  yield ['hundred', { kind: 'hundred', value: 100, isOrdinal: false }];
  yield ['hundredth', { kind: 'hundred', value: 100, isOrdinal: true }];
  for (const [word, value] of SCALES) {
    yield [word, { kind: 'scale', value, isOrdinal: false }];
    yield [`${word}th`, { kind: 'scale', value, isOrdinal: true }];
  }
}
