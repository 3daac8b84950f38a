import { laneCount } from '../../../core/chunks/lanes';

describe('laneCount', () => {
  it.each([
    [127, [], 32, 1],
    [127, ['w1', 'w2'], 32, 1],
    [128, [], 32, 4],
    [128, ['w1'], 32, 4],
    [50_000, ['w1', 'w2', 'w1', 'w3'], 32, 8],
    [50_000, ['w1', 'w2', 'w3'], 5, 5],
    [50_000, [], 1, 1],
  ])('%d lines, %j, at most %d: %d lanes', (totalLines, recentWorkers, lanesPerModel, expected) => {
    expect(laneCount({ totalLines, recentWorkers, lanesPerModel })).toBe(expected);
  });
});
