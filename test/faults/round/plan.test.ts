import { planRound } from './plan';
import { randomFrom } from './random';

describe('the schedule of faults', () => {
  it('depends on the seed only', () => {
    const plan = (seed: number) =>
      planRound({ seed, round: 3, twoWorkers: false, store: 'filesystem' });
    expect(plan(1)).toEqual(plan(1));
    expect(plan(1)).not.toEqual(plan(2));
  });

  it('strikes every part within eight rounds', () => {
    const struck = Array.from({ length: 8 }, (_, round) =>
      planRound({ seed: 5, round, twoWorkers: false, store: 'filesystem' }).faults.map(
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

  it('strikes the S3 server only if objects are there', () => {
    const struck = (store: 'filesystem' | 's3'): string[] =>
      Array.from({ length: 2 }, (_, round) =>
        planRound({ seed: 5, round, twoWorkers: false, store }).faults.map(
          ({ kind, part }) => `${kind} ${part}`,
        ),
      ).flat();
    expect(struck('s3')).toEqual(expect.arrayContaining(['kill s3', 'freeze s3']));
    expect(struck('filesystem').join()).not.toContain('s3');
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
