import { spokenNumber } from './cardinal';
import { numberWord } from './number-words';

/** A word of a text, and what stands between it and the one before. */
interface Token {
  /** White space, punctuation or a hyphen. */
  readonly gap: string;
  readonly text: string;
  readonly word: string;
}

/** What some words become; with a text of null they stay as they were said. */
interface Read {
  readonly text: string | null;
  readonly words: number;
}

/** What some words become. */
interface Written extends Read {
  readonly text: string;
  /** How many words it replaces. */
  readonly words: number;
}

const WORD = /[A-Za-z]+(?:'[A-Za-z]+)?|[^A-Za-z]+/g;
/** Between the words of one number there is a blank or a hyphen, never punctuation. */
const JOINS = /^(?: +|-)$/;
const CURRENCIES: ReadonlyMap<string, string> = new Map([
  ['dollar', '$'],
  ['dollars', '$'],
  ['euro', '€'],
  ['euros', '€'],
  ['pound', '£'],
  ['pounds', '£'],
]);
const CENTS: ReadonlySet<string> = new Set(['cent', 'cents']);
/** Numbers below this stay words, as in written English, unless they are an amount, a share or a decimal. */
const FIRST_FIGURE = 10;

/**
 * Writes English numbers as figures: cardinals from ten, ordinals from tenth, decimals, percent and money. It is
 * conservative: what may be something else stays as it was said, such as "one", "second", or a run of digits.
 * Everything between numbers keeps its case, punctuation and blanks. Applied twice it changes nothing more.
 */
export function englishNumbers(text: string): string {
  const { tokens, rest } = tokensOf(text);
  const words = tokens.map(({ word }) => word);
  let out = '';
  for (let at = 0; at < tokens.length;) {
    const length = runLength(tokens, at);
    const { text: written, words: count } = read(words.slice(at, at + length));
    const own = tokens.slice(at, at + count);
    const said = own.map(({ gap, text: word }) => gap + word).join('');
    out += written === null ? said : (own[0]?.gap ?? '') + written;
    at += count;
  }
  return out + rest;
}

function tokensOf(text: string): { tokens: Token[]; rest: string } {
  const tokens: Token[] = [];
  let gap = '';
  for (const [piece] of text.matchAll(WORD)) {
    if (/^[A-Za-z]/.test(piece)) {
      tokens.push({ gap, text: piece, word: piece.toLowerCase() });
      gap = '';
    } else gap += piece;
  }
  return { tokens, rest: gap };
}

/** The longest number has fewer words: without a bound, a long text would be looked at again for each of them. */
const MOST_WORDS = 40;

/** How many words from one on may belong to one number. */
function runLength(tokens: readonly Token[], from: number): number {
  let length = 1;
  while (length < MOST_WORDS && JOINS.test(tokens[from + length]?.gap ?? '')) length++;
  return length;
}

/** What the words at the beginning become. */
function read(words: readonly string[]): Read {
  const number = spokenNumber(words, 0);
  if (number === null) return { text: null, words: 1 };
  const { value, words: length, isOrdinal } = number;
  if (isOrdinal) return { text: value < FIRST_FIGURE ? null : ordinal(value), words: length };
  const decimals = decimalsAt(words, length);
  const end = length + (decimals?.words ?? 0);
  // "one two three" may be a telephone number, and "twenty twenty" a year.
  if (isNumber(words, end)) return { text: null, words: endOfNumbers(words, end) };
  const figures = grouped(value) + (decimals?.text ?? '');
  const amount = unitAt(words, end)?.(figures);
  if (amount !== undefined) return amount;
  return { text: decimals === null && value < FIRST_FIGURE ? null : figures, words: end };
}

/** "point one four" behind a number. */
function decimalsAt(words: readonly string[], at: number): Written | null {
  if (words[at] !== 'point') return null;
  let digits = '';
  for (let i = at + 1; i < words.length; i++) {
    const word = numberWord(words[i] ?? '');
    if (word === null || word.kind !== 'digit' || word.isOrdinal) break;
    digits += String(word.value);
  }
  return digits === '' ? null : { text: `.${digits}`, words: digits.length + 1 };
}

/** How an amount or a share is written; null if the word is no unit. */
function unitAt(words: readonly string[], at: number): ((figures: string) => Written) | null {
  const word = words[at] ?? '';
  if (word === 'percent') return (figures) => ({ text: `${figures}%`, words: at + 1 });
  const sign = CURRENCIES.get(word);
  if (sign === undefined) return null;
  const cents = centsAt(words, at + 1);
  return (figures) => ({
    text: `${sign}${figures}${figures.includes('.') ? '' : (cents?.text ?? '')}`,
    words: at + 1 + (figures.includes('.') ? 0 : (cents?.words ?? 0)),
  });
}

/** "and fifty cents" behind an amount. */
function centsAt(words: readonly string[], at: number): Written | null {
  const from = words[at] === 'and' ? at + 1 : at;
  const number = spokenNumber(words, from);
  if (number === null || number.isOrdinal || number.value > 99) return null;
  if (!CENTS.has(words[from + number.words] ?? '')) return null;
  const text = `.${String(number.value).padStart(2, '0')}`;
  return { text, words: from + number.words + 1 - at };
}

function isNumber(words: readonly string[], at: number): boolean {
  return numberWord(words[at] ?? '') !== null;
}

function endOfNumbers(words: readonly string[], from: number): number {
  let end = from;
  while (isNumber(words, end)) end++;
  return end;
}

/** With commas from 10,000 on: years have four figures without one. */
function grouped(value: number): string {
  const figures = String(value);
  if (value < 10_000) return figures;
  const groups: string[] = [];
  for (let end = figures.length; end > 0; end -= 3) {
    groups.unshift(figures.slice(Math.max(0, end - 3), end));
  }
  return groups.join(',');
}

function ordinal(value: number): string {
  const isTeen = Math.floor((value % 100) / 10) === 1;
  const ending = isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][value % 10] ?? 'th');
  return `${grouped(value)}${ending}`;
}
