import { createFailureTally } from '../../../cli/batches/failure-tally';
import { createRate } from '../../../cli/batches/rate';
import { targetsBeside } from '../../../cli/batches/result-targets';
import {
  humanBytes,
  relativeTime,
  humanDuration,
  printable,
  shortened,
} from '../../../cli/batches/human-format';

describe('words for people', () => {
  it.each([
    [0, '0.0 s'],
    [9_940, '9.9 s'],
    [9_960, '10 s'],
    [59_600, '1 min'],
    [125_000, '2 min 05 s'],
    [3_599_600, '1 h'],
    [12_000_000, '3 h 20 min'],
    [187_200_000, '2 d 4 h'],
  ])('%i ms is %s', (ms, words) => expect(humanDuration(ms)).toBe(words));

  it.each([
    [0, '0 bytes'],
    [999, '999 bytes'],
    [1_000, '1.0 kB'],
    [999_960, '1.0 MB'],
    [209_715_200, '209.7 MB'],
  ])('%i bytes are %s', (bytes, words) => expect(humanBytes(bytes)).toBe(words));

  it.each([
    [1_000, 'now'],
    [970, '30 s ago'],
    [1_000 + 7_200, 'in 2 h'],
    [1_000 + 172_800, 'in 2 d'],
  ])('second %i seen from second 1000 is %s', (atSec, words) =>
    expect(relativeTime(atSec, 1_000_000)).toBe(words),
  );

  it('never let a text of somebody else steer the terminal', () => {
    expect(printable('a\u001b[31m\r\nb\u202ec\u0007')).toBe('a?[31m b?c?');
    expect(shortened('abcdef', 4)).toBe('abc…');
  });
});

describe('a rate', () => {
  it('is unknown at first, then that of the last half minute', () => {
    const rate = createRate();
    rate.add(0, 0);
    rate.add(10, 500);
    expect(rate.perSecond()).toBeNull();
    rate.add(100, 10_000);
    expect(rate.perSecond()).toBe(10);
    for (let second = 11; second <= 60; second++) rate.add(100, second * 1_000);
    expect(rate.perSecond()).toBe(0);
  });
});

describe('a tally of failures', () => {
  const file = Buffer.from(
    [
      '{"response":null,"error":{"code":"batch_expired","message":"ä"}}',
      '{"response":{"status_code":500,"body":{"error":{"message":"m"}}},"error":null}',
      '{"response":null,"error":{"code":"batch_expired","message":"b"}}',
      'nonsense',
      'null',
    ].join('\n'),
  );

  it.each([1, 7, 1_000])('is the same however the file is cut (%i bytes)', (size) => {
    const tally = createFailureTally();
    for (let at = 0; at < file.length; at += size) tally.add(file.subarray(at, at + size));
    expect(tally.kinds()).toEqual([
      { code: 'batch_expired', count: 2, example: 'ä' },
      { code: 'unreadable line', count: 2, example: 'nonsense' },
      { code: 'HTTP 500', count: 1, example: 'm' },
    ]);
  });
});

describe('result files', () => {
  it.each([
    ['data/in.jsonl', 'data/in.output.jsonl', 'data/in.errors.jsonl'],
    ['in', 'in.output.jsonl', 'in.errors.jsonl'],
    ['a.b/in', 'a.b/in.output.jsonl', 'a.b/in.errors.jsonl'],
  ])('of %s are %s and %s', (input, output, errors) =>
    expect(targetsBeside(input)).toEqual({ output, errors }),
  );
});
