import fc from 'fast-check';
import { groupJobs } from '../../../core/delegation/job-groups';

const jobs = fc
  .array(fc.record({ gap: fc.constantFrom(0, 0, 0, 2), size: fc.integer({ min: 1, max: 3 }) }))
  .map((pieces) => {
    let at = 0;
    return pieces.map(({ gap, size }) => {
      const from = at + gap;
      at = from + size;
      return { from, to: at };
    });
  });

it('puts each job in one group, in the order of the plan, without a gap in a group', () => {
  fc.assert(
    fc.property(jobs, fc.integer({ min: 1, max: 5 }), (given, perPart) => {
      const groups = groupJobs([...given].reverse(), perPart);
      expect(groups.flat()).toEqual(given);
      for (const group of groups) {
        expect(group.length).toBeLessThanOrEqual(perPart);
        for (const [i, { to }] of group.slice(0, -1).entries()) expect(group[i + 1]?.from).toBe(to);
      }
    }),
  );
});

it('makes as few groups as the gaps and the limit allow', () => {
  const given = [0, 1, 2, 3, 4].map((from) => ({ from, to: from + 1 }));
  expect(groupJobs(given, 2).map((group) => group.length)).toEqual([2, 2, 1]);
  expect(groupJobs([...given.slice(0, 2), ...given.slice(3)], 9)).toHaveLength(2);
});
