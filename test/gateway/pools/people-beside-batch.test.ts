import {
  capacityOf,
  peopleBesideBatch,
  type PeopleResult,
  type PeopleScene,
} from '../../support/flow/people-beside-batch';
import { SHAPES, type EngineShape } from '../../support/flow/shapes';

const ENGINES = 2;
const PHASE_MS = 20_000;
const BATCH_FROM_MS = 60_000;
const WARM_MS = 80_000;
const UNTIL_MS = 220_000;
const QUIET = { permits: 0, isControlled: true };
const capacities = new Map(
  Object.entries<EngineShape>(SHAPES).map(([name, shape]) => [name, capacityOf(shape, ENGINES)]),
);

/** Bursts of users at 88 % of the knee, and valleys at 30 %. */
function run(name: string, options: Partial<PeopleScene> = {}): PeopleResult {
  const shape: EngineShape = SHAPES[name as keyof typeof SHAPES];
  return peopleBesideBatch({
    ...{ shape, engines: ENGINES, seed: 1, isControlled: true, untilMs: UNTIL_MS },
    permits: 2 * ENGINES * shape.engine.slots,
    batchFromMs: BATCH_FROM_MS,
    loadAt: (atMs) => (Math.floor(atMs / PHASE_MS) % 2 === 0 ? 0.3 : 0.88),
    capacity: capacities.get(name) ?? 0,
    ...options,
  });
}

function ttft(results: PeopleResult | readonly PeopleResult[], share: number): number {
  const answers = [results].flat().flatMap((one) => one.answers);
  const times = answers.filter(({ isUser, sentMs }) => isUser && sentMs >= WARM_MS);
  const sorted = times.map(({ ttftMs }) => ttftMs).sort((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
}

/** Answers per second after the warm-up, as a share of the capacity. */
function usedBy(name: string, { answers }: PeopleResult, isUser: boolean): number {
  const ended = answers.filter((one) => one.isUser === isUser && one.endMs >= WARM_MS);
  const seconds = (UNTIL_MS - WARM_MS) / 1_000;
  return ended.length / seconds / (capacities.get(name) ?? 0);
}

describe('a pool of engines', () => {
  it.each(['chat', 'scene', 'large', 'prompts'])(
    'lets a batch alone use nine tenths of what it can do: %s',
    (name) => {
      const result = run(name, { batchFromMs: 0, loadAt: () => 0 });
      expect(usedBy(name, result, false)).toBeGreaterThan(0.9);
      const knee = ENGINES * SHAPES[name as keyof typeof SHAPES].engine.slots;
      const full = result.samples.find(({ batch }) => batch >= 0.9 * knee);
      expect(full?.atMs).toBeLessThan(30_000);
    },
  );

  // A pool with few requests differs more from seed to seed.
  it.each([
    ['chat', [1]],
    ['scene', [1]],
    ['large', [1]],
    ['long', [1, 2, 3]],
    ['prompts', [1, 2, 3]],
  ])('serves users without a batch about as fast as without control: %s', (name, seeds) => {
    const free = { permits: 0, isControlled: false };
    const direct = seeds.map((seed) => run(name, { ...free, seed }));
    const controlled = seeds.map((seed) => run(name, { ...QUIET, seed }));
    expect(ttft(controlled, 0.95)).toBeLessThan(1.3 * ttft(direct, 0.95));
  });

  it.each([
    ['chat', [1, 2, 3]],
    ['demo', [1, 2]],
    ['scene', [1]],
    ['large', [1]],
    ['prompts', [1, 2, 3]],
  ])('protects users beside a batch, which uses most of what they leave: %s', (name, seeds) => {
    const alone = seeds.map((seed) => run(name, { ...QUIET, seed }));
    const besides = seeds.map((seed) => run(name, { seed }));
    expect(ttft(besides, 0.5)).toBeLessThan(1.5 * ttft(alone, 0.5));
    expect(ttft(besides, 0.95)).toBeLessThan(1.6 * ttft(alone, 0.95));
    expect(ttft(besides, 0.99)).toBeLessThan(1.6 * ttft(alone, 0.99));
    const uncontrolled = ttft(run(name, { isControlled: false }), 0.5);
    expect(ttft(besides, 0.95)).toBeLessThan(uncontrolled / 4);
    for (const beside of besides) {
      const idle = 1 - usedBy(name, beside, true);
      expect(usedBy(name, beside, false) / idle).toBeGreaterThan(0.6);
    }
  });

  it('gives users most places within two seconds of a burst, if answers take a second', () => {
    const { samples } = run('scene');
    const knee = ENGINES * SHAPES.scene.engine.slots;
    const bursts = [2.5, 3.5, 4.5].map((i) => Math.floor(i) * 2 * PHASE_MS + PHASE_MS);
    const shares = bursts.map((burstMs) => {
      const sample = samples.find(({ atMs }) => atMs >= burstMs + 2_000);
      return (sample?.batch ?? knee) / knee;
    });
    expect(Math.max(...shares)).toBeLessThan(0.25);
  });
});
