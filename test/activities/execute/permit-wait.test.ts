import { permitWait } from '../../../activities/execute/permit-wait';

it.each([
  [{ limit: 8, max: 8, pausedMs: 0 }, false, null],
  [{ limit: 2, max: 8, pausedMs: 0 }, false, null],
  [{ limit: 2, max: 8, pausedMs: 0 }, true, /^a permit of model m: .* overloaded, 2 of 8 /],
  [{ limit: 8, max: 8, pausedMs: 0 }, true, /^a permit of model m: 8 requests at once are allowed/],
  [{ limit: 8, max: 8, pausedMs: 1_001 }, false, /^model m: .* 2 s are left \(Retry-After\)$/],
])('describes what a chunk waits for: %j, waiting: %s', (limit, isWaiting, expected) => {
  const blocked = permitWait('m', limit, isWaiting);
  if (expected === null) expect(blocked).toBeNull();
  else expect(blocked).toMatch(expected);
});
