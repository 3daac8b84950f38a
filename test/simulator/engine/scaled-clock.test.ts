import { ScaledClock } from '../../../simulator/engine/scaled-clock';

describe('a scaled clock', () => {
  it('runs at its rate from the moment of each change', () => {
    const clock = new ScaledClock(5_000);
    expect(clock.read(5_100)).toBe(100);
    clock.setRate(5_200, 0.5);
    expect(clock.read(5_300)).toBe(250);
    expect(clock.wallMsUntil(300)).toBe(100);
  });

  it('stands still at rate 0', () => {
    const clock = new ScaledClock(0);
    clock.setRate(100, 0);
    expect(clock.read(900)).toBe(100);
    expect(clock.wallMsUntil(101)).toBeNull();
    clock.setRate(1_000, 1);
    expect(clock.read(1_010)).toBe(110);
  });

  it('does not catch up a pause of the process', () => {
    const clock = new ScaledClock(0);
    expect(clock.read(3_600_000)).toBe(1_000);
  });
});
