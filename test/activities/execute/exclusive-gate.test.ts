import { ExclusiveGate } from '../../../activities/execute/exclusive-gate';

describe('the gate for exclusive sends', () => {
  it('lets every try begin while no suspect waits', () => {
    const gate = new ExclusiveGate();
    gate.enter();
    expect(gate.mayBegin(null)).toBe(true);
  });

  it('holds new tries back, and lets the suspect begin when all others have returned', () => {
    const gate = new ExclusiveGate();
    const suspect = Symbol('suspect');
    gate.enter();
    gate.request(suspect);
    expect(gate.mayBegin(null)).toBe(false);
    expect(gate.mayBegin(suspect)).toBe(false);
    gate.leave();
    expect(gate.mayBegin(suspect)).toBe(true);
    gate.enter();
    expect(gate.mayBegin(null)).toBe(false);
    gate.leave();
    gate.release(suspect);
    expect(gate.mayBegin(null)).toBe(true);
  });

  it('serves suspects one after the other', () => {
    const gate = new ExclusiveGate();
    const [one, two] = [Symbol('one'), Symbol('two')];
    gate.request(one);
    gate.request(two);
    expect([gate.mayBegin(one), gate.mayBegin(two)]).toEqual([true, false]);
    gate.release(one);
    expect(gate.mayBegin(two)).toBe(true);
  });
});
