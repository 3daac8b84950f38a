import fc from 'fast-check';
import { LeaderFirst } from '../../../core/plan/leader-first';
import { runStarts } from '../../../core/plan/run-starts';

const hashOf = (): number => 0;

describe('the beginning of the run of a line', () => {
  it('is the position of the last mark of a shared run', () => {
    const marks = Uint8Array.from([1, 0, 0, 1, 0, 2, 0, 1]);
    expect([...runStarts({ marks, from: 40, hashOf })]).toEqual([40, 40, 40, 43, 43, -1, -1, 47]);
  });

  it('is the first line of the chunk if the run began before it and has a system prompt', () => {
    const marks = Uint8Array.from([0, 0, 1]);
    expect([...runStarts({ marks, from: 7, hashOf: () => 5 })]).toEqual([7, 7, 9]);
    expect([...runStarts({ marks, from: 7, hashOf })]).toEqual([-1, -1, 9]);
  });

  it('divides lines as the order of sending does: each shared run has one beginning', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(0, 1, 2), { minLength: 1, maxLength: 60 }), (list) => {
        const marks = Uint8Array.from([1, ...list]);
        const starts = runStarts({ marks, from: 0, hashOf });
        // If each line ends before the next one is taken, lines come in plan order: runs are contiguous.
        const order = new LeaderFirst({ marks, isAnswered: () => false, lengthOf: () => 4_096 });
        const taken: number[] = [];
        for (let next = order.take(0); next !== null; next = order.take(0)) {
          taken.push(starts[next] ?? NaN);
          order.onEnded(next);
        }
        const shared = taken.filter((start) => start !== -1);
        expect(shared).toEqual([...shared].sort((a, b) => a - b));
        expect(new Set(shared).size).toBe(marks.filter((mark) => mark === 1).length);
      }),
    );
  });
});
