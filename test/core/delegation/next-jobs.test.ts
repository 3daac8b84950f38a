import fc from 'fast-check';
import type { JobStep } from '../../../core/delegation/job-steps';
import { nextJobs, type KnownJob, type NextJobsInput } from '../../../core/delegation/next-jobs';
import type { Range } from '../../../core/range';

const HOUR = 3_600_000;

function input(changes: Partial<NextJobsInput>): NextJobsInput {
  return {
    jobs: [],
    open: [{ from: 0, to: 100 }],
    unanswered: null,
    limits: { maxLines: 40, maxBytes: 1_000_000, totalBytes: 1_000 },
    isStopping: false,
    generations: 2,
    minLines: 1,
    nowMs: 0,
    giveUpAtMs: 20 * HOUR,
    windowMs: 24 * HOUR,
    ...changes,
  };
}

function job(range: Range, step: JobStep, changes: Partial<KnownJob> = {}): KnownJob {
  const { generation = 0, ordinal = 0 } = changes;
  const id = `${range.from}/${generation}/${ordinal}`;
  return { ...range, id, step, generation, ordinal, outcome: null, reason: null, ...changes };
}

const ranges = (found: readonly Range[]) => found.map(({ from, to }) => [from, to]);

describe('the next jobs of a model', () => {
  it('cover everything at first, in parts of equal size', () => {
    const { fresh, running } = nextJobs(input({}));
    expect(ranges(fresh)).toEqual([
      [0, 33],
      [33, 66],
      [66, 100],
    ]);
    expect(fresh.every(({ generation, ordinal }) => generation + ordinal === 0)).toBe(true);
    expect(running).toEqual([]);
  });

  it('are those that have begun, and jobs over positions that staging has cut off', () => {
    const jobs = [job({ from: 0, to: 60 }, 'submitted')];
    const { fresh, running } = nextJobs(input({ jobs, open: [{ from: 60, to: 100 }] }));
    expect(running).toEqual(jobs);
    expect(fresh).toEqual([{ from: 60, to: 100, generation: 0, ordinal: 0 }]);
  });

  it('are none beside a job that runs, as long as other jobs have left lines', () => {
    const jobs = [job({ from: 0, to: 50 }, 'collected'), job({ from: 50, to: 100 }, 'submitted')];
    const { fresh, running } = nextJobs(input({ jobs, open: [{ from: 10, to: 50 }] }));
    expect([fresh, running]).toEqual([[], [jobs[1]]]);
  });

  it('cover what all jobs of a generation have left, in one job if its lines fit', () => {
    const jobs = [job({ from: 0, to: 50 }, 'collected'), job({ from: 50, to: 100 }, 'collected')];
    const open = [
      { from: 10, to: 50 },
      { from: 90, to: 100 },
    ];
    expect(nextJobs(input({ jobs, open, unanswered: 3 })).fresh).toEqual([
      { from: 10, to: 100, generation: 1, ordinal: 0 },
    ]);
    expect(nextJobs(input({ jobs, open })).fresh).toHaveLength(2);
  });

  it.each([
    ['the generations are used up', { generations: 1 }],
    ['too little time is left', { nowMs: 19 * HOUR }],
    ['fewer lines are left than the provider takes', { minLines: 10, unanswered: 9 }],
    ['the batch stops', { isStopping: true }],
    ['the time to wait for the provider is over', { nowMs: 20 * HOUR }],
    ['the provider has refused all of them', { jobs: [job({ from: 0, to: 100 }, 'refused')] }],
  ])('are none if %s', (_, changes) => {
    const jobs = [job({ from: 0, to: 100 }, 'collected')];
    expect(nextJobs(input({ jobs, ...changes }))).toEqual({ running: [], fresh: [] });
  });

  it('repeat a job for which there was no quota, as often as it takes', () => {
    const refused = (ordinal: number) =>
      job({ from: 0, to: 100 }, 'refused', { ordinal, reason: 'quota' });
    const jobs = Array.from({ length: 9 }, (_, ordinal) => refused(ordinal));
    expect(nextJobs(input({ jobs, generations: 1 })).fresh).toEqual([
      { from: 0, to: 100, generation: 0, ordinal: 9 },
    ]);
  });

  it('repeat a job without the lines that failed it, at most three times', () => {
    const failed = (ordinal: number) =>
      job({ from: 0, to: 100 }, 'collected', { ordinal, reason: 'lines_refused' });
    const after = (count: number) =>
      nextJobs(
        input({ jobs: Array.from({ length: count }, (_, i) => failed(i)), generations: 1 }),
      ).fresh.map(({ ordinal }) => ordinal);
    expect([1, 2, 3, 4].map(after)).toEqual([[1], [2], [3], []]);
  });

  it('never cover a position of a job that runs, nor a position twice', () => {
    const STEP = fc.constantFrom<JobStep>(
      'staging',
      'submitted',
      'collected',
      'refused',
      'abandoned',
    );
    const cuts = fc.uniqueArray(fc.integer({ min: 0, max: 60 }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(
        cuts,
        fc.array(STEP, { minLength: 12, maxLength: 12 }),
        fc.nat(50),
        (at, steps, n) => {
          const sorted = [...at].sort((a, b) => a - b);
          const parts = sorted.slice(1).map((to, i) => ({ from: sorted[i] ?? 0, to }));
          const jobs = parts.flatMap((range, i) =>
            i % 3 === 2 ? [] : [job(range, steps[i] ?? 'staging')],
          );
          const isRunning = ({ step }: KnownJob) => step === 'staging' || step === 'submitted';
          const open = parts.filter(
            (_, i) => !jobs.some((one) => one.from === parts[i]?.from && isRunning(one)),
          );
          const limits = { maxLines: n + 1, maxBytes: 1_000, totalBytes: 0 };
          const { fresh, running } = nextJobs(input({ jobs, open, limits }));
          const all = [...fresh, ...running].sort((a, b) => a.from - b.from);
          return all.every((one, i) => i === 0 || one.from >= (all[i - 1]?.to ?? 0));
        },
      ),
      { numRuns: 500 },
    );
  });
});
