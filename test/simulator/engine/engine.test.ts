import fc from 'fast-check';
import { Engine, type EngineRequest, type EngineSettings } from '../../../simulator/engine/engine';

const SETTINGS: EngineSettings = {
  slots: 2,
  maxQueue: 1,
  stepBaseMs: 10,
  stepGrowthMs: 1,
  prefillMsPerToken: 0.5,
  prefillTokensPerStep: 64,
  cacheTokens: 0,
};

interface Numbered extends EngineRequest {
  readonly number: number;
}

function request(number: number, promptTokens: number, outputTokens: number): Numbered {
  const blocks = Array.from({ length: Math.floor(promptTokens / 16) }, (_, i) => i);
  return { number, promptTokens, blocks, outputTokens };
}

describe('an engine', () => {
  it('takes base, growth and prefill time for each step', () => {
    const engine = new Engine<Numbered>({ ...SETTINGS, cacheTokens: 1_600 });
    engine.advance(100);
    expect(engine.submit(request(0, 100, 2))).toBe(true);
    // 64 and then 36 prompt tokens, the second step with the first token, then one decode step.
    const firstAt = 100 + (10 + 1 + 32) + (10 + 1 + 18);
    expect(engine.advance(firstAt - 0.01)).toEqual([]);
    const events = engine.advance(1_000).map(({ request: _, ...event }) => event);
    expect(events).toEqual([
      { atMs: firstAt, tokens: 1, cachedTokens: 0, done: false },
      { atMs: firstAt + 11, tokens: 2, cachedTokens: 0, done: true },
    ]);
    // The same prompt again: 96 of 100 tokens are cached.
    engine.submit(request(1, 100, 1));
    expect(engine.advance(2_000)).toMatchObject([
      { atMs: 1_000 + 10 + 1 + 2, tokens: 1, cachedTokens: 96, done: true },
    ]);
  });

  it('computes at least the last token of a prompt that is cached completely', () => {
    const engine = new Engine<Numbered>({ ...SETTINGS, cacheTokens: 1_600 });
    engine.submit(request(0, 32, 0));
    engine.advance(1_000);
    engine.submit(request(1, 32, 0));
    expect(engine.advance(2_000)).toMatchObject([{ cachedTokens: 16, tokens: 0, done: true }]);
  });

  it('fills the cache only when a prefill ends', () => {
    const engine = new Engine<Numbered>({ ...SETTINGS, slots: 3, cacheTokens: 1_600 });
    // Its step has begun when the others come, and they share the next one.
    engine.submit(request(0, 0, 2));
    for (const number of [1, 2, 3]) engine.submit(request(number, 20, 1));
    const cached = engine.advance(1_000).map((event) => [event.request.number, event.cachedTokens]);
    expect(cached).toEqual([0, 0, 1, 2, 3].map((number) => [number, number === 3 ? 16 : 0]));
  });

  it('refuses a request when slots and queue are full, and frees the slot of a cancelled one', () => {
    const engine = new Engine<Numbered>(SETTINGS);
    const [a, b, c, d] = [0, 1, 2, 3].map((number) => request(number, 10, 1)) as [
      Numbered,
      Numbered,
      Numbered,
      Numbered,
    ];
    expect([a, b, c, d].map((one) => engine.submit(one))).toEqual([true, true, true, false]);
    expect(engine.snapshot()).toMatchObject({ running: 2, waiting: 1 });
    engine.cancel(a);
    expect(engine.snapshot()).toMatchObject({ running: 2, waiting: 0 });
    expect(engine.submit(d)).toBe(true);
    expect(engine.advance(1_000).map((event) => event.request.number)).toEqual([1, 2, 3]);
  });

  it('lets all waiting requests run when the limit of slots is removed', () => {
    const engine = new Engine<Numbered>({ ...SETTINGS, slots: 1, maxQueue: 5 });
    for (const number of [0, 1, 2]) engine.submit(request(number, 10, 1));
    engine.configure({ ...SETTINGS, slots: 0 });
    expect(engine.snapshot()).toMatchObject({ running: 3, waiting: 0 });
  });
});

type Op =
  | { kind: 'submit'; family: number; promptTokens: number; outputTokens: number }
  | { kind: 'cancel'; index: number }
  | { kind: 'advance'; ms: number; parts: number };

const ops: fc.Arbitrary<Op[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('submit' as const),
        family: fc.integer({ min: 0, max: 3 }),
        promptTokens: fc.integer({ min: 0, max: 200 }),
        outputTokens: fc.integer({ min: 0, max: 12 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('cancel' as const),
        index: fc.nat(60),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('advance' as const),
        ms: fc.integer({ min: 0, max: 120 }),
        parts: fc.integer({ min: 1, max: 7 }),
      }),
    },
  ),
  { maxLength: 60 },
);
const settings: fc.Arbitrary<EngineSettings> = fc.record({
  slots: fc.integer({ min: 1, max: 4 }),
  maxQueue: fc.integer({ min: 0, max: 4 }),
  stepBaseMs: fc.integer({ min: 0, max: 10 }),
  stepGrowthMs: fc.integer({ min: 0, max: 3 }),
  prefillMsPerToken: fc.constantFrom(0, 0.25),
  prefillTokensPerStep: fc.integer({ min: 1, max: 128 }),
  cacheTokens: fc.integer({ min: 0, max: 500 }),
});

interface Outcome {
  /** [request, time, tokens, cached tokens, done] of every event, in order. */
  readonly trace: readonly (readonly [number, number, number, number, boolean])[];
  readonly requests: readonly Numbered[];
  readonly refused: ReadonlySet<number>;
  readonly cancelled: ReadonlySet<number>;
  readonly engine: Engine<Numbered>;
}

/** Plays the operations, checks the bounds after each, and then lets the engine finish. */
function play(given: EngineSettings, list: readonly Op[], parts: (op: number) => number): Outcome {
  const engine = new Engine<Numbered>(given);
  const requests: Numbered[] = [];
  const [refused, cancelled, done] = [new Set<number>(), new Set<number>(), new Set<number>()];
  const trace: [number, number, number, number, boolean][] = [];
  let nowMs = 0;
  const advance = (ms: number): void => {
    nowMs += ms;
    for (const event of engine.advance(nowMs)) {
      const { number } = event.request;
      if (event.done) done.add(number);
      trace.push([number, event.atMs, event.tokens, event.cachedTokens, event.done]);
    }
  };
  for (const op of list) {
    if (op.kind === 'submit') {
      const number = requests.length;
      const length = Math.floor(op.promptTokens / 16);
      const blocks = Array.from({ length }, (_, i) => op.family * 100 + i);
      const one = { number, blocks, promptTokens: op.promptTokens, outputTokens: op.outputTokens };
      requests.push(one);
      if (!engine.submit(one)) refused.add(number);
    } else if (op.kind === 'cancel') {
      const one = requests[op.index];
      if (one !== undefined && !done.has(one.number) && !refused.has(one.number)) {
        engine.cancel(one);
        cancelled.add(one.number);
      }
    } else {
      const count = parts(op.parts);
      for (let i = 0; i < count; i++) advance(op.ms / count);
    }
    const { running, waiting, cachedBlocks, kvUsage } = engine.snapshot();
    expect(running).toBeLessThanOrEqual(given.slots);
    expect(waiting).toBeLessThanOrEqual(given.maxQueue);
    if (waiting > 0) expect(running).toBe(given.slots);
    expect(cachedBlocks).toBeLessThanOrEqual(Math.floor(given.cacheTokens / 16));
    expect(kvUsage).toBeLessThanOrEqual(1);
    expect(refused.size + cancelled.size + done.size + running + waiting).toBe(requests.length);
  }
  advance(1e9);
  return { trace, requests, refused, cancelled, engine };
}

describe('any sequence of requests, cancellations and time', () => {
  it('never exceeds slots, queue and cache, and loses no request and no token', () => {
    fc.assert(
      fc.property(settings, ops, (given, list) => {
        const { trace, requests, refused, cancelled, engine } = play(given, list, (n) => n);
        expect(engine.snapshot()).toMatchObject({ running: 0, waiting: 0 });
        expect(engine.stepEndsAtMs).toBeNull();
        let [queried, hits] = [0, 0];
        for (const { number, promptTokens, outputTokens } of requests) {
          const events = trace.filter(([of]) => of === number);
          if (refused.has(number)) expect(events).toEqual([]);
          if (refused.has(number) || cancelled.has(number)) continue;
          const steps = Math.max(1, outputTokens);
          const tokens = events.map(([, , count]) => count);
          expect(tokens).toEqual(
            Array.from({ length: steps }, (_, i) => Math.min(i + 1, outputTokens)),
          );
          expect(events.map(([, , , , done]) => done).indexOf(true)).toBe(steps - 1);
          const cached = events[0]![3];
          expect(cached % 16).toBe(0);
          expect(cached).toBeLessThanOrEqual(Math.max(0, promptTokens - 1));
          queried += promptTokens;
          hits += cached;
        }
        if (cancelled.size > 0) return;
        expect(engine.snapshot()).toMatchObject({ queriedTokens: queried, hitTokens: hits });
      }),
    );
  });

  it('gives first tokens in the order of arrival', () => {
    fc.assert(
      fc.property(settings, ops, (given, list) => {
        const { trace } = play(given, list, (n) => n);
        const order = [...new Set(trace.map(([number]) => number))];
        expect(order).toEqual([...order].sort((a, b) => a - b));
        const times = trace.map(([, atMs]) => atMs);
        expect(times).toEqual([...times].sort((a, b) => a - b));
      }),
    );
  });

  it('has the same trace each time, however often the engine is advanced', () => {
    fc.assert(
      fc.property(settings, ops, (given, list) => {
        const once = play(given, list, () => 1).trace;
        expect(play(given, list, () => 1).trace).toEqual(once);
        // Powers of two, so that the parts add up exactly.
        expect(play(given, list, (parts) => 2 ** (parts % 4)).trace).toEqual(once);
      }),
    );
  });
});
