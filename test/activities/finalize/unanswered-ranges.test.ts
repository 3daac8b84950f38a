import { unansweredRanges } from '../../../activities/finalize/unanswered-ranges';

it('returns one range for each model if there are too many ranges for one result', () => {
  const ranges = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ from: 2 * i + 1, to: 2 * i + 2 }));
  const few = [{ safeModel: 'm', ranges: ranges(400) }];
  expect(unansweredRanges(few)).toHaveLength(400);
  expect(unansweredRanges([...few, { safeModel: 'n', ranges: ranges(101) }])).toEqual([
    { safe: 'm', from: 1, to: 800 },
    { safe: 'n', from: 1, to: 202 },
  ]);
});
