import { until } from '../../support/until';
import { type Asked, closeOutside, Outside, poolOf, ScriptedBackend } from './outside';

const CEILINGS = { ceilings: [1, 1, 1] };
const controller = (settings: object) => ({ request_queue_controller: settings, bands: CEILINGS });
/** Settings of the pools, and how many backends each has. */
const POOLS: Readonly<
  Record<string, readonly [count: number, settings: Readonly<Record<string, unknown>>]>
> = {
  // Its watermark is named, so that bounds are fixed; the value is the default.
  usual: [1, controller({ watermark_per_backend: 2 })],
  wide: [1, controller({ percentage_deviation_for_bounds: 0.5 })],
  set: [1, controller({ lower_bound_per_backend: 1, upper_bound_per_backend: 4 })],
  zero: [1, controller({ lower_bound_per_backend: 0, upper_bound_per_backend: 2 })],
  schmitt: [
    1,
    controller({
      lower_bound_per_backend: 1,
      upper_bound_per_backend: 4,
      hysteresis: 'schmitt',
    }),
  ],
  two: [2, controller({ watermark_per_backend: 2 })],
  ceilings: [
    1,
    {
      request_queue_controller: {
        watermark_per_backend: 10,
        percentage_deviation_for_bounds: 0.01,
      },
    },
  ],
  cost: [
    1,
    {
      ...controller({ watermark_per_backend: 10, max_cost_per_backend: 3 }),
      fair_request_queue: { unit_cost: true },
    },
  ],
  learnt: [2, { adaptive: { initial: 4 } }],
};

let gateway: Outside;
const backends: Record<string, ScriptedBackend[]> = {};

beforeAll(async () => {
  let pools = {};
  for (const [name, [count, settings]] of Object.entries(POOLS)) {
    backends[name] = await Promise.all(
      Array.from({ length: count }, () => ScriptedBackend.start()),
    );
    pools = { ...pools, ...poolOf(name, backends[name], settings) };
  }
  gateway = await Outside.start({ gateway: { pools } });
}, 60_000);
afterAll(closeOutside);

const backendOf = (pool: string) => backends[pool]![0]!;

/** Sends so many requests, of which the first so many bypass the queue. */
async function fill(pool: string, bypassed: number, queued: number): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (let i = 1; i <= bypassed + queued; i++) {
    asked.push(gateway.ask(pool, `r${i}`));
    await gateway.has(pool, Math.min(i, bypassed), Math.max(0, i - bypassed));
  }
  return asked;
}

/** Answers one request, and waits until so many are in flight and queued. */
async function end(pool: string, inFlight: number, queued: number): Promise<void> {
  await until(() => backendOf(pool).held.length > 0, 5_000, 'a request to answer', 2);
  backendOf(pool).respond();
  await gateway.has(pool, inFlight, queued);
}

describe('bounds that are set', () => {
  it('are 1.8 and 2.2 by default: bypasses fill the pool to 3, the queue fills it to 2', async () => {
    await fill('usual', 3, 2);
    const { bounds, saturation } = await gateway.pool('usual');
    expect(bounds).toMatchObject({ lower: 1.8, watermark: 2, upper: 2.2 });
    expect(saturation).toBeCloseTo(3 / 2.2, 5);
    await end('usual', 2, 2);
    await end('usual', 2, 1);
    await end('usual', 2, 0);
    await end('usual', 1, 0);
  });

  it('send a newcomer to the queue while others wait, although the stock is below the upper one', async () => {
    await fill('set', 4, 1);
    await end('set', 3, 1);
    gateway.ask('set', 'newcomer');
    await gateway.has('set', 3, 2);
    expect(backendOf('set').came).not.toContain('newcomer');
  });

  it('follow the deviation: half of 2 lets requests bypass below 3 and drain below 1', async () => {
    await fill('wide', 3, 2);
    await end('wide', 2, 2);
    await end('wide', 1, 2);
    // At 0 the queue may send one, and with it the stock is at the lower bound again.
    await end('wide', 1, 1);
    await end('wide', 1, 0);
  });

  it('open the gate for an empty stock even if the lower one is 0', async () => {
    await fill('zero', 2, 2);
    await end('zero', 1, 2);
    await end('zero', 1, 1);
    await end('zero', 1, 0);
    await end('zero', 0, 0);
  });

  it('with the hysteresis of a Schmitt trigger, drain up to the upper one once the stock fell below the lower', async () => {
    await fill('schmitt', 4, 6);
    await end('schmitt', 3, 6);
    await end('schmitt', 2, 6);
    await end('schmitt', 1, 6);
    await end('schmitt', 4, 2);
    await end('schmitt', 3, 2);
  });

  it('hold sheddable requests below 90 % of the upper one and let users have the rest', async () => {
    const sheddable = { 'x-gateway-inference-objective': 'batch' };
    for (let i = 0; i < 12; i++) gateway.ask('ceilings', `b${i}`, sheddable);
    // 0.9 × 10.1 = 9.09
    await gateway.has('ceilings', 10, 2);
    gateway.ask('ceilings', 'user');
    await gateway.has('ceilings', 11, 2);
    gateway.ask('ceilings', 'late-user');
    await gateway.has('ceilings', 11, 3);
    expect(await gateway.queued('ceilings')).toEqual({ critical: 0, standard: 1, sheddable: 2 });
  });

  it('bound the cost in flight beside the number of requests', async () => {
    await fill('cost', 3, 2);
    expect((await gateway.pool('cost')).stock).toEqual({ requests: 3, cost: 3 });
    await end('cost', 3, 1);
  });

  it('follow the backends that come and go, and wait until the stock is below them', async () => {
    const [stays, leaves] = backends['two']!;
    await fill('two', 5, 3);
    expect((await gateway.pool('two')).bounds).toMatchObject({ lower: 3.6, upper: 4.4 });
    leaves!.health = 503;
    const upperIs = (upper: number) => async () =>
      (await gateway.pool('two')).bounds.upper === upper;
    await until(upperIs(2.2), 5_000, 'the bounds of one backend');
    await gateway.has('two', 5, 3);
    for (const left of [4, 3, 2]) {
      const backend = stays!.held.length > 0 ? stays! : leaves!;
      backend.respond();
      await gateway.has('two', left, 3);
    }
    leaves!.respond();
    await gateway.has('two', 2, 2);
    leaves!.health = 200;
    await until(upperIs(4.4), 5_000, 'the bounds of two backends');
    await gateway.has('two', 4, 0);
    expect(leaves!.came.length + stays!.came.length).toBe(8);
  });
});

describe('learnt bounds', () => {
  it('begin with the sum of the initial limits, let batches have less and users more', async () => {
    const { bounds } = await gateway.pool('learnt');
    expect(bounds).toMatchObject({ watermark: 8, mode: 'learnt' });
    const sheddable = { 'x-gateway-inference-objective': 'batch' };
    for (let i = 0; i < 10; i++) gateway.ask('learnt', `b${i}`, sheddable);
    // 0.9 × 8 = 7.2
    await gateway.has('learnt', 8, 2);
    gateway.ask('learnt', 'user');
    await gateway.has('learnt', 9, 2);
    const { backends: shares } = await gateway.pool('learnt');
    expect(shares.map(({ in_flight }) => in_flight).sort()).toEqual([4, 5]);
  });
});
