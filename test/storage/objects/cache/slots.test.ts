import { inRuns, Slots } from '../../../../storage/objects/cache/slots';

const numbers = (slots: readonly { number: number }[]) => slots.map(({ number }) => number);

describe('slots', () => {
  it('are given in order until all are in use', () => {
    const slots = new Slots(2);
    const taken = [slots.take(false), slots.take(false), slots.take(false)];
    expect(taken.map((slot) => slot?.number)).toEqual([0, 1, undefined]);
  });

  it('that have never held a page are not given while the disk is full', () => {
    const slots = new Slots(3);
    const [first, second] = [slots.take(false)!, slots.take(false)!];
    second.isProven = true;
    slots.giveBack(first);
    slots.giveBack(second);
    expect(slots.take(true)).toBe(second);
    expect(slots.take(true)).toBeNull();
    expect(slots.take(false)).toBe(first);
  });

  it('behind each other are one run', () => {
    const slots = [7, 3, 4, 9, 8, 1].map((number) => ({ number, isProven: true }));
    expect(inRuns(slots).map(numbers)).toEqual([[1], [3, 4], [7, 8, 9]]);
    expect(inRuns([])).toEqual([]);
  });
});
