import { planRound } from './plan';
import { randomFrom } from './random';

const ONE = { twoWorkers: false, store: 'filesystem', hasGateway: false } as const;

describe('the schedule of faults', () => {
  it('depends on the seed only', () => {
    const plan = (seed: number) => planRound({ ...ONE, seed, round: 3 });
    expect(plan(1)).toEqual(plan(1));
    expect(plan(1)).not.toEqual(plan(2));
  });

  it('strikes every part within eight rounds', () => {
    const struck = Array.from({ length: 8 }, (_, round) =>
      planRound({ ...ONE, seed: 5, round }).faults.map(({ kind, part }) => `${kind} ${part}`),
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
        planRound({ ...ONE, seed: 5, round, store }).faults.map(
          ({ kind, part }) => `${kind} ${part}`,
        ),
      ).flat();
    expect(struck('s3')).toEqual(expect.arrayContaining(['kill s3', 'freeze s3']));
    expect(struck('filesystem').join()).not.toContain('s3');
  });

  it('strikes a gateway only if there is one, in each of its ways within four rounds', () => {
    const struck = (hasGateway: boolean): string =>
      Array.from({ length: 4 }, (_, round) =>
        planRound({ ...ONE, seed: 5, round, hasGateway }).faults.map(
          ({ kind, part }) => `${kind} ${part}`,
        ),
      ).join();
    for (const kind of ['kill', 'freeze', 'drain'])
      expect(struck(true)).toContain(`${kind} gateway`);
    expect(struck(false)).not.toContain('gateway');
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
