import { planRound } from './plan';
import { randomFrom } from './random';

describe('the schedule of faults', () => {
  it('depends on the seed only', () => {
    const plan = (seed: number) => planRound({ seed, round: 3, twoWorkers: false });
    expect(plan(1)).toEqual(plan(1));
    expect(plan(1)).not.toEqual(plan(2));
  });

  it('strikes every part within eight rounds', () => {
    const struck = Array.from({ length: 8 }, (_, round) =>
      planRound({ seed: 5, round, twoWorkers: false }).faults.map(
        ({ kind, part }) => `${kind} ${part}`,
      ),
    ).flat();
    for (const part of ['worker', 'api', 'temporal', 'postgres']) {
      expect(struck).toContain(`kill ${part}`);
    }
    for (const fault of ['freeze worker', 'drain worker', 'cut model-server']) {
      expect(struck).toContain(fault);
    }
  });

  it('draws numbers evenly', () => {
    const random = randomFrom(42);
    const drawn = Array.from({ length: 6_000 }, () => random.between(1, 6));
    for (let eyes = 1; eyes <= 6; eyes++) {
      const times = drawn.filter((one) => one === eyes).length;
      expect(times).toBeGreaterThan(850);
      expect(times).toBeLessThan(1_150);
    }
  });
});
