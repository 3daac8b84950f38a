import type { Disturbance } from './evidence';
import { NOW_MS, arrival, SENT, rules, KILL } from './fixtures';

const again = arrival(0, { atMs: NOW_MS + 950, endedAtMs: NOW_MS + 960 });

it('allows resending what was answered while the store was away when the worker was killed', () => {
  const first = arrival(0, { atMs: NOW_MS - 9_000, endedAtMs: KILL.fromMs - 400 });
  const judged = (disturbances: readonly Disturbance[]): string[] =>
    rules({ arrivals: [first, ...SENT.slice(1), again], disturbances });
  const away = (fromMs: number, toMs: number): Disturbance => {
    return { kind: 'kill', part: 's3', fromMs: KILL.fromMs + fromMs, toMs: KILL.fromMs + toMs };
  };
  expect(judged([KILL])).toEqual(['sent-again']);
  expect(judged([KILL, away(-300, 100)])).toEqual([]);
  expect(judged([KILL, away(-100, 100)])).toEqual(['sent-again']);
  expect(judged([KILL, away(50, 100)])).toEqual(['sent-again']);
  expect(judged([KILL, away(-9_000, -8_000)])).toEqual(['sent-again']);
  // The store alone never makes a worker send an answered line again.
  expect(judged([away(-300, 100)])).toEqual(['sent-again']);
});
