import fc from 'fast-check';
import type { SeenRoutes } from '../../../core/dispatch/announced-routes';
import { findRoute, isKnownModel, KNOWN_MS } from '../../../core/dispatch/announced-routes';

const worker = (ageMs: number, models: Record<string, number>, global: number | null = null) => ({
  ageMs,
  global,
  models,
});

describe('the route of a model', () => {
  it("is the model's own queue if a live worker lists it, else the shared queue", () => {
    const named = worker(0, { a: 1_000 });
    const all = worker(0, {}, 9_000);
    expect(findRoute('a', [named, all])).toEqual({ queue: 'model', requestTimeoutMs: 1_000 });
    expect(findRoute('b', [named, all])).toEqual({ queue: 'shared', requestTimeoutMs: 9_000 });
    expect(findRoute('b', [named])).toBeNull();
    expect(findRoute('toString', [named])).toBeNull();
  });

  it('has the longest timeout of the workers that serve the model', () => {
    const workers = [worker(0, { a: 1_000 }), worker(5_000, { a: 3_000 }), worker(0, { a: 2_000 })];
    expect(findRoute('a', workers)?.requestTimeoutMs).toBe(3_000);
  });

  it('ends with the last live worker, while the model stays known for a while', () => {
    const gone = [worker(30_001, { a: 1_000 })];
    expect(findRoute('a', gone)).toBeNull();
    expect(isKnownModel('a', gone)).toBe(true);
    expect(isKnownModel('a', [worker(KNOWN_MS + 1, { a: 1_000 })])).toBe(false);
    expect(isKnownModel('b', gone)).toBe(false);
    expect(isKnownModel('b', [worker(0, {}, 1)])).toBe(true);
  });

  it('exists only for models that are known', () => {
    const age = fc.integer({ min: 0, max: 2 * KNOWN_MS });
    const seen: fc.Arbitrary<SeenRoutes> = fc.record({
      ageMs: age,
      global: fc.option(fc.nat()),
      models: fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), fc.nat()),
    });
    fc.assert(
      fc.property(
        fc.array(seen, { maxLength: 10, size: 'max' }),
        fc.constantFrom('a', 'b', '__proto__'),
        (workers, model) => {
          if (findRoute(model, workers) !== null) expect(isKnownModel(model, workers)).toBe(true);
        },
      ),
    );
  });
});
