import fc from 'fast-check';
import { LearntLimit, type SentMark } from '../../../../core/dispatch/backends/learnt-limit';
import { closedLoop } from './simulated-backend';

const end = { work: 100, pauseMs: 0, nowMs: 0 };

describe('the learnt limit of a backend', () => {
  it('stays in its bounds, grows by one, and is cut at most once for what was sent before a cut', () => {
    const event = fc.record({
      signal: fc.constantFrom('success', 'success', 'success', 'overload', 'none'),
      sends: fc.nat(4),
      /** Picks the exchange that ends. */
      pick: fc.nat(),
      tookMs: fc.nat(3_000),
    });
    const bounds = fc
      .tuple(fc.integer({ min: 1, max: 9 }), fc.nat(9), fc.nat(60))
      .map(([min, more, most]) => ({ min, initial: min + more, max: min + more + most }));
    fc.assert(
      fc.property(bounds, fc.array(event, { maxLength: 250, size: 'max' }), (options, events) => {
        const limit = new LearntLimit(options);
        const open: { sent: SentMark; cutsBefore: number }[] = [];
        let cuts = 0;
        let nowMs = 0;
        for (const { signal, sends, pick, tookMs } of events) {
          for (let i = 0; i < sends; i++) {
            const before = limit.limit;
            open.push({ sent: limit.send(nowMs), cutsBefore: cuts });
            expect(limit.limit).toBe(before);
          }
          if (open.length === 0) continue;
          nowMs += tookMs;
          const [exchange] = open.splice(pick % open.length, 1);
          const before = limit.limit;
          limit.end({ ...end, signal, sent: exchange!.sent, nowMs });
          expect(limit.inFlight).toBe(open.length);
          expect(limit.limit).toBeGreaterThanOrEqual(options.min);
          expect(limit.limit).toBeLessThanOrEqual(options.max);
          if (signal === 'none') expect(limit.limit).toBe(before);
          if (signal === 'success') expect(limit.limit).toBeLessThanOrEqual(before + 1);
          if (signal !== 'overload') continue;
          const isCut = exchange!.cutsBefore === cuts;
          const cut = Math.max(options.min, Math.floor(before * 0.7));
          expect(limit.limit).toBe(isCut ? cut : before);
          if (isCut) cuts++;
        }
      }),
      { numRuns: 60 },
    );
  });

  it('pauses for the longest requested time, ten seconds at most', () => {
    const limit = new LearntLimit();
    const overload = (pauseMs: number, nowMs: number) =>
      limit.end({ ...end, signal: 'overload', sent: limit.send(nowMs), pauseMs, nowMs });
    overload(5_000, 1_000);
    overload(2_000, 2_000);
    expect(limit.pausedUntilMs).toBe(6_000);
    expect(limit.hasRoom({ isSheddable: false, nowMs: 5_999 })).toBe(false);
    expect(limit.hasRoom({ isSheddable: true, nowMs: 6_000 })).toBe(true);
    overload(3_600_000, 3_000);
    expect(limit.pausedUntilMs).toBe(13_000);
  });

  it('holds users back only a quarter above the limit, and in slow start only at its maximum', () => {
    const limit = new LearntLimit({ initial: 4, min: 1, max: 9 });
    const room = (isSheddable: boolean) => limit.hasRoom({ isSheddable, nowMs: 0 });
    const sent = Array.from({ length: 4 }, () => limit.send(0));
    expect([room(true), room(false)]).toEqual([false, true]);
    for (let i = 0; i < 5; i++) limit.send(0);
    expect(room(false)).toBe(false);
    for (const one of sent) limit.end({ ...end, signal: 'overload', sent: one });
    expect(limit.isSlowStart).toBe(false);
    expect([limit.limit, limit.mostInFlight, limit.inFlight]).toEqual([2, 3, 5]);
    expect(room(false)).toBe(false);
  });

  it('ends slow start at the best known load if users wait in a queue of the engines', () => {
    const limit = new LearntLimit();
    limit.onEngineQueue(0);
    expect(limit.isSlowStart).toBe(true);
    // Eight requests at a time are known, and the limit goes on to sixteen.
    let nowMs = 0;
    const open = Array.from({ length: 8 }, () => limit.send(0));
    for (let i = 0; limit.limit < 14; i++) {
      nowMs += 125;
      limit.end({ ...end, signal: 'success', sent: open[i % 8]!, nowMs });
      open[i % 8] = limit.send(nowMs);
    }
    limit.onEngineQueue(nowMs);
    expect(limit.isSlowStart).toBe(false);
    expect(limit.limit).toBe(8);
  });

  it.each([
    [{ initial: 8, min: 9, max: 10 }],
    [{ initial: 8, min: 1, max: 7 }],
    [{ initial: 8, min: 0, max: 9 }],
  ])('refuses bounds that contradict each other: %j', (options) => {
    expect(() => new LearntLimit(options)).toThrow(RangeError);
  });

  it('does not grow without load, and does not grow while it is measured', () => {
    const limit = new LearntLimit();
    for (let i = 0; i < 100; i++) {
      limit.end({ ...end, signal: 'success', sent: limit.send(i * 100), nowMs: i * 100 + 50 });
    }
    expect(limit.limit).toBe(8);
  });

  it.each([
    ['1.3 times the load of users', false, 10],
    ['twice the load of a batch alone', true, 16],
  ])('slow start goes up to %s', (_, isSheddable, expected) => {
    const limit = new LearntLimit();
    const open = Array.from({ length: 8 }, () => limit.send(0, { isSheddable }));
    for (let i = 1; i < 200; i++) {
      const [sent] = open.splice(i % 8, 1, limit.send(i * 125, { isSheddable }));
      if (sent !== undefined) limit.end({ ...end, signal: 'success', sent, nowMs: i * 125 });
    }
    expect(limit.limit).toBe(expected);
  });

  it('rests for 60 s at the best load before it looks for a better one again', () => {
    const changes = limitChanges();
    const settledMs = changes.slice(1).flatMap(({ atMs, limit }, i) => {
      const before = changes[i]!;
      const restMs = atMs - before.atMs;
      return restMs > 10_000 && limit > before.limit ? [restMs] : [];
    });
    expect(settledMs.length).toBeGreaterThanOrEqual(5);
    // The rest begins up to half a second before the limit has reached the best load.
    for (const restMs of settledMs) expect(restMs).toBeGreaterThan(59_000);
  });

  it.each([
    [16, 400],
    [64, 400],
    [128, 400],
  ])('finds a knee of %d with %d requests that always wait', (knee, clients) => {
    const { limitAt } = closedLoop({ knee, clients, seed: 7, untilMs: 600_000, isSheddable: true });
    expect(limitAt(600_000)).toBeGreaterThanOrEqual(0.8 * knee);
    expect(limitAt(600_000)).toBeLessThanOrEqual(1.5 * knee);
    // The answers take about 2 s; the limit doubles every other round.
    expect(limitAt(60_000)).toBeGreaterThanOrEqual(0.9 * knee);
  });

  it('is not driven far beyond the knee by users that slow start does not hold back', () => {
    const { limitAt } = closedLoop({
      ...{ knee: 32, clients: 200, seed: 7, untilMs: 300_000, isSheddable: false },
    });
    expect(limitAt(300_000)).toBeLessThanOrEqual(64);
    expect(limitAt(300_000)).toBeGreaterThanOrEqual(29);
  });

  it('leaves its maximum if the backend cannot use it', () => {
    const scene = { knee: 60, clients: 400, seed: 7, isSheddable: true, initial: 100, max: 100 };
    const { limitAt } = closedLoop({ ...scene, untilMs: 1_800_000 });
    expect(limitAt(1_800_000)).toBeLessThanOrEqual(90);
  });

  it('keeps a server that refuses what exceeds its places busy, and is refused rarely', () => {
    const { busy, refused } = closedLoop({
      ...{ knee: 1_000, places: 20, clients: 100, seed: 7, untilMs: 300_000, isSheddable: true },
    });
    expect(busy).toBeGreaterThan(0.8);
    expect(refused).toBeLessThan(0.05);
  });

  it('makes the same decisions for the same requests', () => {
    const scene = { knee: 40, clients: 100, untilMs: 100_000, isSheddable: true };
    const trace = (seed: number) => closedLoop({ ...scene, seed }).limits;
    expect(trace(3)).toEqual(trace(3));
    expect(trace(3)).not.toEqual(trace(4));
    expect(trace(3)[0]?.limit).toBe(8);
  });
});

/** When the limit of a backend with 16 places changes in 20 minutes, with lines that always wait. */
function limitChanges() {
  const limit = new LearntLimit();
  const open: { readonly endsMs: number; readonly sent: SentMark }[] = [];
  const changes: { readonly atMs: number; readonly limit: number }[] = [];
  for (let nowMs = 0; nowMs < 1_200_000;) {
    while (limit.hasRoom({ isSheddable: true, nowMs })) {
      const tookMs = 1_000 * Math.max(1, (open.length + 1) / 16);
      open.push({ endsMs: nowMs + tookMs, sent: limit.send(nowMs) });
    }
    open.sort((a, b) => a.endsMs - b.endsMs);
    const first = open.shift();
    if (first === undefined) break;
    nowMs = first.endsMs;
    const before = limit.limit;
    limit.end({ ...end, signal: 'success', sent: first.sent, nowMs });
    if (limit.limit !== before) changes.push({ atMs: nowMs, limit: limit.limit });
  }
  return changes;
}
