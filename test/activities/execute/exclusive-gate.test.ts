import { ExclusiveGate } from '../../../activities/execute/exclusive-gate';

describe('the gate for suspected lines', () => {
  it('lets everybody begin while nobody asks to be alone', () => {
    const gate = new ExclusiveGate();
    gate.enter();
    expect(gate.mayBegin(null)).toBe(true);
  });

  it('holds others back, and lets the suspect begin when they have come back', () => {
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

  it('serves suspects one after another', () => {
    const gate = new ExclusiveGate();
    const [one, two] = [Symbol('one'), Symbol('two')];
    gate.request(one);
    gate.request(two);
    expect([gate.mayBegin(one), gate.mayBegin(two)]).toEqual([true, false]);
    gate.release(one);
    expect(gate.mayBegin(two)).toBe(true);
  });
});
