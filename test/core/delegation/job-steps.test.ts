import fc from 'fast-check';
import {
  CREATABLE_STEPS,
  isSettled,
  JOB_STEPS,
  stepsBefore,
} from '../../../core/delegation/job-steps';
import type { JobStep } from '../../../core/delegation/job-steps';

const isLegal = (from: JobStep, to: JobStep): boolean => stepsBefore(to).includes(from);

describe('the steps of a job', () => {
  it('lead from staging to released, with or without an upload', () => {
    const path = 'staging staged uploaded creating submitted ended collected released'.split(' ');
    const inline = path.filter((step) => step !== 'uploaded');
    for (const steps of [path, inline] as JobStep[][]) {
      steps.slice(1).forEach((to, i) => expect(isLegal(steps[i] ?? to, to)).toBe(true));
    }
  });

  it('never go back, whatever is written in whatever order', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...JOB_STEPS)), (targets) => {
        let step: JobStep = 'staging';
        const seen = new Set<JobStep>([step]);
        for (const to of targets) {
          if (!isLegal(step, to)) continue;
          expect(seen.has(to)).toBe(false);
          seen.add((step = to));
        }
      }),
    );
  });

  it('lead from a settled step to released only', () => {
    for (const from of JOB_STEPS.filter(isSettled)) {
      const next = JOB_STEPS.filter((to) => isLegal(from, to));
      expect(next).toEqual(from === 'released' ? [] : ['released']);
    }
  });

  it('allow a create only before the id of the job is known', () => {
    for (const step of CREATABLE_STEPS) expect(isLegal(step, 'submitted')).toBe(true);
    expect(stepsBefore('creating')).toEqual(['staged', 'uploaded']);
  });
});
