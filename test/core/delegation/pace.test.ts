import { Pace } from '../../../core/delegation/pace';

/** Works on lines of `bytes` until a pause is due; the lines. */
function linesUntilDue(pace: Pace, bytes = 0): number {
  for (let lines = 1; lines < 1_000; lines++) if (pace.worked(bytes)) return lines;
  throw new Error('a pause was never due');
}

it('pauses nobody while no local request ends', () => {
  const pace = new Pace(0, 0);
  linesUntilDue(pace);
  expect(pace.pauseMs(0, 1_000)).toBe(0);
});

it('gives a busy local model all but a few lines of each second', () => {
  let [nowMs, lines] = [0, 0];
  const pace = new Pace(0, nowMs);
  while (nowMs < 10_000) {
    lines += linesUntilDue(pace);
    nowMs += 1 + pace.pauseMs(nowMs, nowMs);
  }
  expect(lines / 10).toBeGreaterThan(200);
  expect(lines / 10).toBeLessThan(330);
});

it('counts long lines as several', () => {
  const long = linesUntilDue(new Pace(0, 0), 80_000);
  expect(long).toBeLessThan(linesUntilDue(new Pace(0, 0)) / 5);
});

it('takes a single request within a moment for no rate', () => {
  const pace = new Pace(0, 0);
  linesUntilDue(pace);
  expect(pace.pauseMs(1, 5)).toBe(0);
});

it('goes on at full speed when the local model has ended', () => {
  const pace = new Pace(0, 0);
  linesUntilDue(pace);
  expect(pace.pauseMs(1_000, 1_000)).toBeGreaterThan(0);
  linesUntilDue(pace);
  expect(pace.pauseMs(1_000, 1_100)).toBe(0);
});
