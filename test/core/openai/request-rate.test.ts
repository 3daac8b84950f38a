import fc from 'fast-check';
import { type RequestBudget, resetText, takeRequest } from '../../../core/openai/request-rate';

it('allows the requests of one minute at once, and then as many as the rate adds', () => {
  let budget: RequestBudget | undefined;
  for (let left = 2; left >= 0; left--) {
    const verdict = takeRequest(budget, 3, 0);
    expect(verdict).toMatchObject({ isAllowed: true, remaining: left });
    budget = verdict.budget;
  }
  const refused = takeRequest(budget, 3, 5_000);
  expect(refused).toMatchObject({ isAllowed: false, remaining: 0, retryMs: 15_000 });
  expect(takeRequest(refused.budget, 3, 19_999).isAllowed).toBe(false);
  expect(takeRequest(refused.budget, 3, 20_000)).toMatchObject({ isAllowed: true, remaining: 0 });
});

it('never allows more than the limit plus the requests that the rate has added', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000 }),
      fc.array(fc.integer({ min: -5_000, max: 90_000 }), { maxLength: 200 }),
      (perMinute, steps) => {
        let budget: RequestBudget | undefined;
        let nowMs = 1_000_000;
        let [forwardMs, allowed] = [0, 0];
        for (const step of steps) {
          nowMs += step;
          forwardMs += Math.max(0, step);
          const verdict = takeRequest(budget, perMinute, nowMs);
          budget = verdict.budget;
          if (verdict.isAllowed) allowed++;
          expect(verdict.remaining).toBeGreaterThanOrEqual(0);
          expect(verdict.remaining).toBeLessThan(perMinute);
          const later = takeRequest(budget, perMinute, nowMs + verdict.retryMs + 1);
          expect(later.isAllowed).toBe(true);
        }
        expect(allowed).toBeLessThanOrEqual(perMinute + (forwardMs * perMinute) / 60_000 + 1e-6);
      },
    ),
  );
});

it.each([
  [0, '0s'],
  [120, '120ms'],
  [1_000, '1s'],
  [59_001, '1m0s'],
  [125_000, '2m5s'],
])('writes %d ms as %s', (ms, text) => {
  expect(resetText(ms)).toBe(text);
});
