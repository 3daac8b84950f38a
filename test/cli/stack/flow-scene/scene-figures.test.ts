import { figuresOf, sceneTable, secondLine } from '../../../../cli/stack/flow-scene/scene-figures';
import { arrivals } from '../../../../cli/stack/flow-scene/scene-plan';

const user = (dueMs: number, ttftMs: number) => ({
  isUser: true,
  dueMs,
  ttftMs,
  endMs: dueMs + 500,
});
const line = (endMs: number) => ({ isUser: false, dueMs: 0, ttftMs: 1, endMs });

it('counts what came after the lead-in, and what users left free', () => {
  const answers = [
    user(1_000, 9_000),
    ...Array.from({ length: 20 }, (_, i) => user(8_000 + i * 100, 50 + i)),
    ...Array.from({ length: 30 }, (_, i) => line(8_000 + i * 100)),
    line(7_000),
  ];
  const figures = figuresOf('beside a batch', { answers, failed: 0, tookMs: 18_000 }, 10);
  expect(figures).toMatchObject({ p50: 59, p95: 68, p99: 69, linesPerSec: 3 });
  // 10 answers per second at most, 2 for users, 3 of the other 8 for the batch.
  expect(figures.idleUsed).toBeCloseTo(3 / 8);
  expect(sceneTable([figures])[1]).toEqual([
    ...['beside a batch', '59 ms', '68 ms', '69 ms', '3.0', '38 %'],
  ]);
});

it('shows a second as a bar without colours', () => {
  const shown = secondLine(7, [100, 200, 300], 40);
  expect(shown).toMatch(/^ {3}7 s {2}p95 {3}300 ms █+ +lines\/s {2}40 ▒+$/);
  expect(secondLine(8, [], 0)).toContain('-');
});

it('sends users at random times, at the same ones in each arm, with bursts', () => {
  const times = arrivals(100, 20_000);
  expect(arrivals(100, 20_000)).toEqual(times);
  const rate = (fromMs: number, untilMs: number) =>
    (1_000 * times.filter((atMs) => atMs >= fromMs && atMs < untilMs).length) / (untilMs - fromMs);
  expect(rate(0, 5_000)).toBeGreaterThan(20);
  expect(rate(0, 5_000)).toBeLessThan(40);
  expect(rate(5_000, 10_000)).toBeGreaterThan(75);
});
