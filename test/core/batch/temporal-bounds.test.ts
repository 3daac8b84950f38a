import fc from 'fast-check';
import {
  detailsText,
  failureText,
  fairnessKey,
  fitsModelNames,
  keyword,
  keywordList,
  memoText,
  summaryText,
  TEMPORAL_LIMITS,
} from '../../../core/batch/temporal-bounds';
import { jsonBytes } from '../../../core/batch/json-size';

const EMOJI = '😀';
/** Texts as a hostile client would send them. */
const hostile = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 600 }),
  fc
    .array(
      fc.constantFrom(
        'a',
        EMOJI,
        '\ud83d',
        '\ude00',
        '\0',
        '\x1f',
        '\n',
        '"',
        '\\',
        'é',
        '漢',
        '\u2028',
      ),
      { maxLength: 600 },
    )
    .map((parts) => parts.join('')),
  fc.constantFrom('', EMOJI.repeat(256), '"'.repeat(300), '\0'.repeat(300), '漢'.repeat(256)),
);
const encodedBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const isWhole = (text: string) => !/[\p{Cs}]/u.test(text);

it.each([
  ['keyword', keyword, TEMPORAL_LIMITS.keywordBytes],
  ['memo', memoText, TEMPORAL_LIMITS.memoBytes],
  ['summary', summaryText, TEMPORAL_LIMITS.summaryBytes],
  ['details', detailsText, TEMPORAL_LIMITS.detailsBytes],
  ['failure', failureText, TEMPORAL_LIMITS.failureBytes],
] as const)('a %s is never over its bytes and never cut inside a character', (_name, make, max) => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 1, max: 40 }), (text, times) => {
      const made = make(text.repeat(times));
      expect(encodedBytes(made)).toBeLessThanOrEqual(max);
      expect(isWhole(made)).toBe(true);
      expect(made).not.toContain('\0');
    }),
  );
});

it('measures text as JSON.stringify and UTF-8 encode it', () => {
  fc.assert(fc.property(hostile, (text) => expect(jsonBytes(text)).toBe(encodedBytes(text))));
});

it('keeps ordinary names unchanged', () => {
  expect(keyword('llama-3')).toBe('llama-3');
  expect(keyword('équipe 漢字')).toBe('équipe 漢字');
  expect(keywordList(['a', 'b'])).toEqual(['a', 'b']);
  expect(failureText('one\ntwo')).toBe('one\ntwo');
});

it('keeps different long names distinct', () => {
  const long = EMOJI.repeat(255);
  expect(keyword(`${long}a`)).not.toBe(keyword(`${long}b`));
  expect(keyword('a\0')).not.toBe(keyword('a\x01'));
});

it('keeps the first keywords that fit', () => {
  fc.assert(
    fc.property(fc.array(hostile, { maxLength: 30 }), (texts) => {
      const list = keywordList(texts);
      expect(encodedBytes(list)).toBeLessThanOrEqual(TEMPORAL_LIMITS.keywordListBytes);
      expect(list).toEqual(texts.slice(0, list.length).map(keyword));
      expect(list.length).toBeLessThanOrEqual(TEMPORAL_LIMITS.keywordListItems);
    }),
  );
  expect(keywordList([EMOJI.repeat(256), EMOJI.repeat(255)])).toHaveLength(2);
  const ascii = Array.from({ length: 20 }, (_, i) => `${i}`.padEnd(110, 'm'));
  expect(keywordList(ascii)).toEqual(ascii.slice(0, 9));
});

it('makes a fairness key of at most 64 bytes', () => {
  const digest = (text: string) => `d${jsonBytes(text)}`.padEnd(80, '0');
  fc.assert(
    fc.property(hostile, (text) => {
      const key = fairnessKey(text, digest);
      expect(Buffer.byteLength(key)).toBeLessThanOrEqual(TEMPORAL_LIMITS.fairnessKeyBytes);
      expect(isWhole(key)).toBe(true);
    }),
  );
  expect(fairnessKey('team-a', digest)).toBe('team-a');
});

it('reports when the model names of a file are too large for one result', () => {
  const names = (count: number, name: string) => Array.from({ length: count }, () => name);
  expect(fitsModelNames(names(500, 'm'.repeat(100)))).toBe(true);
  expect(fitsModelNames(names(500, 'm'.repeat(256)))).toBe(false);
  expect(fitsModelNames(names(100, EMOJI.repeat(256)))).toBe(false);
});
