import { seriesValues } from './record/series-values';

it.each<[string, (number | null)[], string]>([
  ['equal samples', [3, 3, 3], '3x2'],
  ['one sample', [7], '7'],
  ['steady steps', [1, 3, 5, 7], '1+2x3'],
  ['steps down', [9, 6, 3, 0], '9-3x3'],
  ['short ramps', [1, 2, 5], '1 2 5'],
  ['fractions', [0.1, 0.2, 0.3, 0.4], '0.1 0.2 0.3 0.4'],
  ['a late begin', [null, null, 4], '_x2 4'],
  ['an end', [4, null, null, null], '4 stale _x2'],
  ['a gap', [4, null, null, 5, 5], '4 stale _x1 5x1'],
])('writes %s in the notation of promtool', (_what, samples, values) => {
  expect(seriesValues(samples)).toBe(values);
});
