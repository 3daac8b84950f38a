import fc from 'fast-check';
import { englishNumbers } from '../../../core/audio/itn/english';
import { STAGES } from '../../../core/audio/itn/stages';
import { postProcessed } from '../../../core/audio/post-processing';
import type { Transcription } from '../../../core/audio/transcription';

it.each([
  ['Go forward ten meters.', 'Go forward 10 meters.'],
  ['twenty five dollars', '$25'],
  ['It costs twenty-five dollars and fifty cents, or so.', 'It costs $25.50, or so.'],
  ['three point one four', '3.14'],
  ['the twenty first of May', 'the 21st of May'],
  ['fifty percent', '50%'],
  ['five percent of one hundred and five', '5% of 105'],
  ['two million three hundred thousand people', '2,300,000 people'],
  ['nineteen hundred', '1900'],
  ['a hundred reasons', 'a hundred reasons'],
  ['the twelfth night, the hundredth day', 'the 12th night, the hundredth day'],
  ['two point five euros', '€2.5'],
  ['Seventeen, eighteen.', '17, 18.'],
  ['eleven hundred and twelve', '1112'],
])('writes "%s" as "%s"', (spoken, written) => {
  expect(englishNumbers(spoken)).toBe(written);
});

it.each([
  'one of them, for a second',
  'one two three',
  'call five five five one two',
  'a point of order',
  'point five',
  'thousands and hundreds of them',
  'and so on, and on',
  'Someone often listens; none weighs a stone.',
  'twenty twenty',
  'The first, the second and the third.',
  '',
])('leaves "%s" as it was said', (text) => {
  expect(englishNumbers(text)).toBe(text);
});

it('changes nothing more when it is applied again, and keeps everything that is not a number', () => {
  const word = fc.constantFrom(
    ...'zero one two nine ten fifteen twenty ninety hundred thousand million and point percent'.split(
      ' ',
    ),
    ..."dollars cents first third twentieth Hello, world! - 12 3.5% don't é 東京".split(' '),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 30 }), (words) => {
      const once = englishNumbers(words.join(' '));
      expect(englishNumbers(once)).toBe(once);
      const others = (text: string) => text.match(/Hello,|world!|don't|é|東京/g);
      expect(others(once)).toEqual(others(words.join(' ')));
    }),
  );
});

it('takes time in proportion to the text', () => {
  const text = 'one hundred and '.repeat(20_000);
  const startMs = performance.now();
  englishNumbers(text);
  expect(performance.now() - startMs).toBeLessThan(10_000);
});

const HEARD: Transcription = {
  ...{ text: 'ten meters', language: 'en', durationSec: 1 },
  segments: [{ text: 'ten meters', startSec: 0, endSec: 1 }],
  words: [{ text: 'ten', startSec: 0, endSec: 1 }],
};

it('changes the text and the segments of an English transcript, and not its words', () => {
  const stages = [STAGES['itn-en']];
  const done = postProcessed(HEARD, { stages, model: 'm' }, fail);
  expect([done.text, done.segments[0]?.text, done.words[0]?.text]).toEqual([
    ...['10 meters', '10 meters', 'ten'],
  ]);
  const german = { ...HEARD, language: 'de' };
  expect(postProcessed(german, { stages, model: 'm' }, fail)).toEqual(german);
});

it('skips a stage that throws, and counts it', () => {
  const failures: unknown[] = [];
  const broken = () => {
    throw new Error('broken');
  };
  const stages = [broken, STAGES['itn-en']];
  const done = postProcessed(HEARD, { stages, model: 'm' }, (error) => failures.push(error));
  expect([done.text, failures.length]).toEqual(['10 meters', 1]);
});

function fail(): never {
  throw new Error('no stage should fail');
}
