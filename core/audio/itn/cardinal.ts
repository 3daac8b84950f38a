import { type NumberWord, numberWord } from './number-words';

/** A number that some words say. */
export interface SpokenNumber {
  readonly value: number;
  /** How many words it takes. */
  readonly words: number;
  readonly isOrdinal: boolean;
}

/**
 * The longest number that begins at a word: "two hundred and five", "nineteen", "twenty first". Null if none does. Words
 * are in lower case; words with a hyphen are given apart.
 */
export function spokenNumber(words: readonly string[], from: number): SpokenNumber | null {
  const parser = new NumberParser();
  let end = from;
  for (let at = from; at < words.length; at++) {
    // "and" belongs to a number only behind a hundred or a scale, and before another number word.
    if (words[at] === 'and' && at > from && parser.mayTakeAnd) {
      const next = numberWord(words[at + 1] ?? '');
      if (next === null || next.kind === 'hundred' || next.kind === 'scale') break;
      continue;
    }
    const word = numberWord(words[at] ?? '');
    if (word === null || !parser.take(word)) break;
    end = at + 1;
    if (word.isOrdinal) break;
  }
  if (end === from) return null;
  return { value: parser.value, words: end - from, isOrdinal: parser.isOrdinal };
}

/** Adds up the words of a number as long as they follow each other as in English. */
class NumberParser {
  isOrdinal = false;
  #total = 0;
  /** The number in front of the next scale. */
  #group = 0;
  #last: NumberWord | null = null;
  #leastScale = Infinity;

  get value(): number {
    return this.#total + this.#group;
  }

  get mayTakeAnd(): boolean {
    return this.#last?.kind === 'hundred' || this.#last?.kind === 'scale';
  }

  /** Returns false if a word cannot follow. */
  take(word: NumberWord): boolean {
    if (!this.#fits(word)) return false;
    if (word.kind === 'hundred') this.#group *= 100;
    else if (word.kind === 'scale') {
      this.#total += this.#group * word.value;
      this.#group = 0;
      this.#leastScale = word.value;
    } else this.#group += word.value;
    this.#last = word;
    this.isOrdinal = word.isOrdinal;
    return true;
  }

  #fits({ kind, value }: NumberWord): boolean {
    const last = this.#last?.kind ?? null;
    const isFresh = last === null || last === 'hundred' || last === 'scale';
    switch (kind) {
      case 'digit':
        return isFresh || (last === 'ten' && value > 0);
      case 'teen':
      case 'ten':
        return isFresh;
      case 'hundred':
        return this.#group > 0 && this.#group < 100 && last !== 'hundred' && last !== 'scale';
      case 'scale':
        return this.#group > 0 && value < this.#leastScale && last !== 'scale';
    }
  }
}
