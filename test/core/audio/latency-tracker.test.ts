import { LatencyTracker } from '../../../core/audio/latency-tracker';

let nowMs = 0;
const tracker = () => new LatencyTracker<string>({ ttlMs: 60_000, now: () => nowMs });
beforeEach(() => (nowMs = 1_000));

it('measures the phases of a request', () => {
  const latency = tracker();
  latency.start('a');
  nowMs += 10;
  latency.dequeued('a');
  nowMs += 1;
  latency.grpcStarted('a');
  nowMs += 100;
  // A repeated call changes nothing: its time belongs to the request.
  latency.grpcStarted('a');
  nowMs += 5;
  expect(latency.complete('a')).toEqual({ queueWaitMs: 10, grpcTimeMs: 105, totalTimeMs: 116 });
  expect(latency.complete('a')).toBeNull();
});

it('counts all of a request that never got a slot as waiting', () => {
  const latency = tracker();
  latency.start('a');
  nowMs += 30;
  expect(latency.complete('a')).toEqual({ queueWaitMs: 30, grpcTimeMs: 0, totalTimeMs: 30 });
});

it('removes entries after 60 s, or after the life of their request', () => {
  const latency = tracker();
  latency.start('short');
  latency.start('long', 100_000);
  nowMs += 60_000;
  expect([latency.cleanup(), latency.size]).toEqual([1, 1]);
  nowMs += 40_000;
  expect([latency.cleanup(), latency.size]).toEqual([1, 0]);
  latency.dequeued('short');
  expect(latency.complete('short')).toBeNull();
});
