import { until } from '../../support/until';
import {
  closeOutside,
  ONE_AT_A_TIME,
  Outside,
  poolOf,
  ScriptedBackend,
  type Asked,
} from './outside';

/** Each pool has a backend of its own, so that no test waits for another one. */
const POOLS = {
  ...{ start: {}, mixed: {}, tie: {}, cancel: {}, turn: {}, tokens: { unit_cost: false } },
  ...{ finish: { scheduler: 'finish' }, 'finish-cancel': { scheduler: 'finish' } },
  ...{ fifo: {}, strict: {}, weighted: {}, floor: {}, urgent: {}, promoted: {}, unpromoted: {} },
  ages: {},
} as const;
type Name = keyof typeof POOLS | 'flow-limit';
const BANDS: Readonly<Record<string, object>> = {
  strict: { between: 'strict' },
  weighted: { between: 'weighted' },
  floor: { between: 'strict_floor' },
  promoted: { between: 'strict', promoted_share: 1 },
  unpromoted: { between: 'strict', promoted_share: 0 },
  ages: { between: 'strict', promote_after: '300ms' },
};

let gateway: Outside;
const backends = {} as Record<Name, ScriptedBackend>;

beforeAll(async () => {
  let pools = {};
  for (const [name, queue] of Object.entries(POOLS)) {
    const backend = await ScriptedBackend.start();
    backends[name as Name] = backend;
    const settings = {
      ...ONE_AT_A_TIME,
      bands: { ...ONE_AT_A_TIME.bands, ...BANDS[name] },
      fair_request_queue: { unit_cost: true, ...queue },
    };
    const models = name === 'mixed' ? { models: ['mixed', 'mixed-half'] } : {};
    pools = { ...pools, ...poolOf(name, [backend], { ...settings, ...models }) };
  }
  const backend = await ScriptedBackend.start();
  backends['flow-limit'] = backend;
  const request_queue_controller = { watermark_per_backend: 4, max_in_flight_per_flow: 1 };
  pools = { ...pools, ...poolOf('flow-limit', [backend], { request_queue_controller }) };
  gateway = await Outside.start({
    auth: { mode: 'header' },
    fairness: { tenants: { double: 2, quarter: 4, odd: 1.6 }, models: { 'mixed-half': 0.5 } },
    gateway: {
      pools,
      tenants: Object.fromEntries(
        ['one', 'two', 'three'].map((t) => [t, { max_band: 'critical' }]),
      ),
    },
  });
}, 60_000);
afterAll(closeOutside);

const person =
  (pool: string, tenant: string, name: string, fields = {}, body = {}) =>
  () =>
    gateway.ask(pool, name, { 'x-maas-username': tenant, ...fields }, body);
const line =
  (pool: string, tenant: string, name: string, fields = {}) =>
  () =>
    gateway.line(pool, name, tenant, { 'x-maas-username': 'workers', ...fields });
const priority = (value: number) => ({ 'x-nightshift-priority': String(value) });
const REALTIME = { 'x-gateway-inference-objective': 'realtime' };

/** Fills the pool with one request, queues the others in this order, and returns the order in which they are sent. */
async function orderOf(pool: Name, sends: readonly (() => Asked)[]): Promise<string> {
  person(pool, 'one', 'first')();
  await backends[pool].holds(1);
  await gateway.queue(pool, sends);
  const order = await backends[pool].serveOneByOne(sends.length);
  backends[pool].respond();
  await gateway.has(pool, 0, 0);
  return order.join(' ');
}

describe('start tags', () => {
  it('serve a tenant of weight 2 twice as often, and the earlier tag of equal ones first', async () => {
    const a = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map((name) => person('start', 'double', name));
    const b = ['b1', 'b2', 'b3'].map((name) => person('start', 'two', name));
    expect(await orderOf('start', [...a, ...b])).toBe('a1 b1 a2 b2 a3 a4 b3 a5 a6');
  });

  it('multiply the weight of the tenant by that of the model', async () => {
    // Weight 2 × 0.5 equals 1: the flows take turns.
    const a = ['a1', 'a2', 'a3'].map((name) => person('mixed-half', 'double', name));
    const b = ['b1', 'b2', 'b3'].map((name) => person('mixed', 'two', name));
    person('mixed', 'one', 'first')();
    await backends.mixed.holds(1);
    await gateway.queue('mixed', [...a, ...b]);
    expect((await backends.mixed.serveOneByOne(6)).join(' ')).toBe('a1 b1 a2 b2 a3 b3');
  });

  it('give a tenant that comes late its next turn, and no credit for its absence', async () => {
    const a = ['a1', 'a2', 'a3'].map((name) => person('tie', 'two', name));
    const b = ['b1', 'b2', 'b3'].map((name) => person('tie', 'three', name));
    person('tie', 'one', 'first')();
    await backends.tie.holds(1);
    await gateway.queue('tie', a);
    await backends.tie.serveOneByOne(1);
    await gateway.queue('tie', b);
    // b1 begins at the tag of a1, which is being served; a2 is one turn further.
    expect((await backends.tie.serveOneByOne(5)).join(' ')).toBe('b1 a2 b2 a3 b3');
  });

  it('charge nothing for requests whose clients hang up', async () => {
    person('cancel', 'one', 'first')();
    await backends.cancel.holds(1);
    const a = ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => person('cancel', 'two', name));
    const b = ['b1', 'b2', 'b3'].map((name) => person('cancel', 'three', name));
    const asked = await gateway.queue('cancel', [...a, ...b]);
    for (const one of asked.slice(0, 4)) one.hangUp();
    await gateway.has('cancel', 1, 4);
    expect((await backends.cancel.serveOneByOne(4)).slice(0, 2)).toContain('a5');
  });

  it('charge tokens: requests of four times the tokens get a fourth of the turns', async () => {
    const pool = 'tokens';
    const large = { prompt: 'x'.repeat(8_000), max_tokens: 1 };
    const small = { prompt: 'x'.repeat(2_000), max_tokens: 1 };
    person(pool, 'one', 'first', {}, small)();
    await backends[pool].holds(1);
    const a = ['a1', 'a2', 'a3'].map((name) => person(pool, 'two', name, {}, large));
    const b = Array.from({ length: 8 }, (_, i) => person(pool, 'three', `b${i + 1}`, {}, small));
    await gateway.queue(pool, [...a, ...b]);
    const order: string[] = [];
    let body = usage(500);
    while (order.length < 10) {
      backends[pool].respond(undefined, body);
      await backends[pool].holds(1);
      order.push(backends[pool].held[0]!.name);
      body = usage(order.at(-1)!.startsWith('a') ? 2_000 : 500);
    }
    // Between two of the large ones there are four of the small ones, or five if a part of a token is rounded.
    const [, , second] = order
      .map((name, i) => (name.startsWith('a') ? i : -1))
      .filter((i) => i >= 0);
    expect(order.filter((name) => name.startsWith('a'))).toEqual(
      expect.arrayContaining(['a1', 'a2']),
    );
    expect(order.indexOf('a2') - order.indexOf('a1') - 1).toBeGreaterThanOrEqual(4);
    expect(order.indexOf('a2') - order.indexOf('a1') - 1).toBeLessThanOrEqual(5);
    expect(second ?? 10).toBeGreaterThanOrEqual(9);
  });
});

const usage = (input: number) => ({ usage: { prompt_tokens: input, completion_tokens: 1 } });

describe('finish tags', () => {
  it('follow size / weight on arrival', async () => {
    const a = ['a1', 'a2', 'a3', 'a4'].map((name) => person('finish', 'quarter', name));
    const b = ['b1', 'b2'].map((name) => person('finish', 'odd', name));
    // Tags: a 0.25, 0.5, 0.75, 1; b 0.625, 1.25.
    expect(await orderOf('finish', [...a, ...b])).toBe('a1 a2 b1 a3 a4 b2');
  });

  it('keep charging requests whose clients hang up', async () => {
    const pool = 'finish-cancel';
    person(pool, 'one', 'first')();
    await backends[pool].holds(1);
    const a = ['a1', 'a2', 'a3', 'a4'].map((name) => person(pool, 'two', name));
    const b = ['b1', 'b2', 'b3'].map((name) => person(pool, 'three', name));
    const asked = await gateway.queue(pool, [...a, ...b]);
    for (const one of asked.slice(0, 3)) one.hangUp();
    await gateway.has(pool, 1, 4);
    expect((await backends[pool].serveOneByOne(4)).join(' ')).toBe('b1 b2 b3 a4');
  });
});

describe('inside a flow', () => {
  it('keeps the order of arrival whatever the sizes are', async () => {
    const sizes = [9_000, 10, 5_000, 1, 700];
    const sends = sizes.map((size, i) =>
      person('fifo', 'two', `r${i}`, {}, { prompt: 'x'.repeat(size) }),
    );
    expect(await orderOf('fifo', sends)).toBe('r0 r1 r2 r3 r4');
  });

  it('serves urgent lines of a batch before normal ones and relaxed ones last', async () => {
    const sends = [4, 3, 2, 3].map((value, i) =>
      line('urgent', 'two', `p${value}-${i}`, priority(value)),
    );
    expect(await orderOf('urgent', sends)).toBe('p2-2 p3-1 p3-3 p4-0');
  });

  it('serves lines with the same prefix back to back', async () => {
    const prefix = { 'x-nightshift-prefix': '0badcafe' };
    const a = ['a1', 'a2', 'a3'].map((name) => line('turn', 'two', name, prefix));
    const b = ['b1', 'b2', 'b3'].map((name) => line('turn', 'three', name));
    expect(await orderOf('turn', [...a, ...b])).toBe('a1 a2 a3 b1 b2 b3');
  });
});

describe('between bands', () => {
  const many = (count: number, send: (i: number) => () => Asked) =>
    Array.from({ length: count }, (_, i) => send(i));
  const bandsOf = (order: string) => order.replaceAll(/\d| /g, '');

  it('strict serves critical, then standard, then sheddable requests', async () => {
    const sends = [0, 1].flatMap((i) => [
      line('strict', 'two', `b${i}`),
      person('strict', 'two', `s${i}`),
      person('strict', 'two', `c${i}`, REALTIME),
    ]);
    expect(await orderOf('strict', sends)).toBe('c0 c1 s0 s1 b0 b1');
  });

  it('weighted gives 7, 2 and 1 of the first ten turns', async () => {
    const sends = [
      ...many(2, (i) => line('weighted', 'two', `b${i}`)),
      ...many(3, (i) => person('weighted', 'two', `s${i}`)),
      ...many(8, (i) => person('weighted', 'two', `c${i}`, REALTIME)),
    ];
    // The request that filled the pool was the first standard one.
    const first = 's' + bandsOf(await orderOf('weighted', sends)).slice(0, 9);
    expect([...first].sort().join('')).toBe('bcccccccss');
  });

  it('strict_floor gives a lower band that waits 5 % of what is sent meanwhile', async () => {
    const sends = [
      ...many(2, (i) => line('floor', 'two', `b${i}`)),
      ...many(24, (i) => person('floor', 'two', `c${i}`, REALTIME)),
    ];
    // What filled the pool before owes it nothing. After one request of others it is owed 1/20, so it is sent. The next
    // one follows when 20 more were sent, which includes it; cost that fades meanwhile may make that one more.
    const order = bandsOf(await orderOf('floor', sends));
    expect(order).toMatch(/^cbc{18,19}b/);
    expect((await gateway.pool('floor')).bands.sheddable.dispatched['floor']).toBe(2);
  });

  it('an urgent line goes first within its share, and waits for the turn of its tenant without one', async () => {
    const sends = (pool: string) => [
      ...['s0', 's1'].map((name) => person(pool, 'two', name)),
      ...['n0', 'n1'].map((name) => line(pool, 'two', name)),
      line(pool, 'three', 'urgent', priority(2)),
    ];
    expect(
      (await orderOf('promoted', sends('promoted'))).split(' ').indexOf('urgent'),
    ).toBeLessThan(3);
    expect(await orderOf('unpromoted', sends('unpromoted'))).toMatch(/^s0 s1 n0/);
  });
});

it('makes a request critical after promote_after, behind those of its tenant, and no line of a batch', async () => {
  person('ages', 'one', 'first')();
  await backends.ages.holds(1);
  await gateway.queue('ages', [person('ages', 'two', 's1'), line('ages', 'two', 'b1')]);
  const hasAged = async () => (await gateway.queued('ages')).critical === 1;
  await until(hasAged, 5_000, 'a promoted request', 2);
  expect(await gateway.queued('ages')).toEqual({ critical: 1, standard: 0, sheddable: 1 });
  await gateway.queue('ages', [
    person('ages', 'two', 'c1', REALTIME),
    person('ages', 'three', 'c2', REALTIME),
  ]);
  expect((await backends.ages.serveOneByOne(4)).join(' ')).toBe('s1 c2 c1 b1');
  const { critical, standard } = (await gateway.pool('ages')).bands;
  expect([critical.dispatched['queue'], standard.dispatched['queue']]).toEqual([3, 0]);
});

it('holds a flow back that has as many requests at each backend as it may', async () => {
  const pool = 'flow-limit';
  person(pool, 'two', 'a1')();
  await gateway.has(pool, 1, 0);
  await gateway.queue(pool, [person(pool, 'two', 'a2'), person(pool, 'two', 'a3')]);
  person(pool, 'three', 'b1')();
  await gateway.has(pool, 2, 2);
  await backends[pool].holds(2);
  expect(backends[pool].came).toEqual(['a1', 'b1']);
  backends[pool].respond('a1');
  await gateway.has(pool, 2, 1);
  await backends[pool].holds(2);
  expect(backends[pool].came).toEqual(['a1', 'b1', 'a2']);
});
