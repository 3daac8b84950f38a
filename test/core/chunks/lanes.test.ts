import { laneCount } from '../../../core/chunks/lanes';

describe('laneCount', () => {
  it.each([
    [127, [], 32, 4, 1],
    [127, ['w1', 'w2'], 32, 4, 1],
    [128, [], 32, 4, 6],
    [128, [], 32, 2, 4],
    [128, ['w1'], 32, 4, 6],
    [50_000, ['w1', 'w2', 'w1', 'w3'], 32, 4, 10],
    [50_000, ['w1', 'w2', 'w3'], 5, 4, 5],
    [50_000, [], 1, 4, 1],
  ])(
    '%d lines, %j, at most %d, %d spare: %d lanes',
    (totalLines, recentWorkers, lanesPerModel, spareLanes, expected) => {
      const input = { totalLines, recentWorkers, lanesPerModel, spareLanes };
      expect(laneCount(input)).toBe(expected);
    },
  );
});
