import { createRate } from '../../../cli/batches/rate';

describe('the rate of a batch', () => {
  it('is unknown at first, then that of the last 30 s', () => {
    const rate = createRate();
    rate.add(0, 0);
    rate.add(10, 500);
    expect(rate.perSecond()).toBeNull();
    rate.add(100, 10_000);
    expect(rate.perSecond()).toBe(10);
    for (let second = 11; second <= 60; second++) rate.add(100, second * 1_000);
    expect(rate.perSecond()).toBe(0);
  });
});
