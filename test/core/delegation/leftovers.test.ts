import { giveUpAtMs, leftoverCode, leftoverPlan } from '../../../core/delegation/leftovers';

const HOUR = 3_600_000;
const leftovers = {
  ...{ lines: 100, generationsUsed: 1, generations: 2, minLines: 1, isRefusedForGood: false },
  ...{ hasFallback: true, nowMs: 0, giveUpAtMs: 10 * HOUR, windowMs: 24 * HOUR },
};

describe('leftovers', () => {
  it('are submitted again while generations, lines and time suffice', () => {
    expect(leftoverPlan(leftovers)).toBe('generation');
    expect(leftoverPlan({ ...leftovers, giveUpAtMs: 2.4 * HOUR })).toBe('generation');
  });

  it.each([
    ['the generations are used up', { generationsUsed: 2 }],
    ['they are too few for a job', { minLines: 101 }],
    ['less than a tenth of the window is left', { giveUpAtMs: 2.4 * HOUR - 1 }],
    ['the provider refused them for good', { isRefusedForGood: true }],
  ])('run at the gateway if %s, and end with an error without one', (_, over) => {
    expect(leftoverPlan({ ...leftovers, ...over })).toBe('fallback');
    expect(leftoverPlan({ ...leftovers, ...over, hasFallback: false })).toBe('errors');
  });

  it('need nothing if there are none', () => {
    expect(leftoverPlan({ ...leftovers, lines: 0 })).toBe('none');
  });
});

describe('the time at which a batch gives its providers up', () => {
  const batch = {
    ...{ createdAtMs: 0, expiresAtMs: 24 * HOUR, hasFallback: true },
    ...{ fallbackBeforeMs: 4 * HOUR, cancelLeadMs: HOUR / 4 },
  };

  it('leaves the gateway the time that is set for it, but at most a third of the window', () => {
    expect(giveUpAtMs(batch)).toBe(20 * HOUR);
    expect(giveUpAtMs({ ...batch, expiresAtMs: 6 * HOUR })).toBe(4 * HOUR);
  });

  it('leaves a cancel the time that is set for it, but at most a tenth of the window', () => {
    expect(giveUpAtMs({ ...batch, hasFallback: false })).toBe(23.75 * HOUR);
    expect(giveUpAtMs({ ...batch, hasFallback: false, expiresAtMs: HOUR })).toBe(0.9 * HOUR);
  });
});

describe('the error of a line without an answer', () => {
  it.each([
    ['ended', 'expired', false, 'provider_expired'],
    ['collected', 'cancelled', true, 'provider_expired'],
    ['collected', 'completed', false, 'provider_missing_result'],
    ['collected', 'partial_complete', false, 'provider_missing_result'],
    ['abandoned', 'completed', false, 'provider_failed'],
    ['collected', 'failed', false, 'provider_failed'],
    ['refused', null, false, 'provider_failed'],
    ['abandoned', null, false, 'provider_failed'],
  ] as const)('of a job that is %s and %s (time over: %s) is %s', (step, outcome, isOver, code) => {
    expect(leftoverCode({ step, outcome }, isOver)).toBe(code);
  });
});
