import { until } from '../../support/until';
import { type Asked, closeOutside, dropped, Outside, refusal } from './outside';
import { narrowPools, type NarrowPools } from './narrow-pools';

const POOLS = {
  flows: { total_capacity: 3, flow_capacity: 2 },
  guarantees: { total_capacity: 4, flow_capacity: 2 },
  eviction: { total_capacity: 4, flow_capacity: 4, sheddable_capacity: 4 },
  standard: { total_capacity: 2, flow_capacity: 1 },
  'batches-full': { total_capacity: 2, flow_capacity: 2, sheddable_capacity: 2 },
  sheddable: { total_capacity: 10, flow_capacity: 2, sheddable_capacity: 2 },
  urgency: { total_capacity: 4, flow_capacity: 4, sheddable_capacity: 4 },
  auto: { total_capacity: 10, flow_capacity: 10 },
  'critical-only': { enqueue: 'critical' },
} as const;
type Name = keyof typeof POOLS;

let gateway: Outside;
let backends: NarrowPools<Name>['backends'];

beforeAll(async () => {
  const narrow = await narrowPools(POOLS);
  const { pools } = narrow;
  backends = narrow.backends;
  const tenants = Object.fromEntries(
    ['a', 'b', 'c'].map((name) => [name, { max_band: 'critical' }]),
  );
  gateway = await Outside.start({ auth: { mode: 'header' }, gateway: { pools, tenants } });
}, 60_000);
afterAll(closeOutside);

const ask = (pool: Name, tenant: string, name: string, objective = 'none') =>
  gateway.ask(pool, name, {
    'x-maas-username': tenant,
    'x-gateway-inference-objective': objective,
  });
/** Sends a request of a tenant in a band: critical, standard or sheddable. */
const user = (pool: Name, tenant: string, name: string) => () => ask(pool, tenant, name);
const critical = (pool: Name, tenant: string, name: string) => () =>
  ask(pool, tenant, name, 'realtime');
const batch = (pool: Name, tenant: string, name: string) => () => ask(pool, tenant, name, 'batch');

async function full(pool: Name, sends: readonly (() => Asked)[]): Promise<Asked[]> {
  ask(pool, 'z', 'first');
  await backends[pool].holds(1);
  return gateway.queue(pool, sends);
}

const TOO_MANY_FLOWS = dropped('too_many_flows', 'rejected-saturated');
const FLOW_FULL = dropped('insufficient_flow_capacity', 'rejected-saturated');
const EVICTED = dropped('evicted', 'evicted');

it('refuses a flow beyond its capacity, and a new one when the queue is full', async () => {
  await full('flows', [user('flows', 'a', 'a1'), user('flows', 'a', 'a2')]);
  expect(await refusal(ask('flows', 'a', 'a3'))).toEqual(FLOW_FULL);
  await gateway.queue('flows', [user('flows', 'b', 'b1')]);
  expect(await refusal(ask('flows', 'c', 'c1'))).toEqual(TOO_MANY_FLOWS);
  // The total holds for flows that wait, too.
  expect(await refusal(ask('flows', 'b', 'b2'))).toEqual(FLOW_FULL);
  await gateway.has('flows', 1, 3);
});

it('gives each critical flow its places, and refuses one whose places would exceed the queue', async () => {
  await full('guarantees', [
    critical('guarantees', 'a', 'a1'),
    user('guarantees', 'a', 's1'),
    user('guarantees', 'a', 's2'),
    critical('guarantees', 'b', 'b1'),
  ]);
  expect(await refusal(ask('guarantees', 'c', 'c1', 'realtime'))).toEqual(TOO_MANY_FLOWS);
  // Both flows still get their second place, at the cost of the standard requests.
  critical('guarantees', 'a', 'a2')();
  critical('guarantees', 'b', 'b2')();
  const isAllCritical = async () => (await gateway.queued('guarantees')).critical === 4;
  await until(isAllCritical, 5_000, 'four critical requests', 2);
  expect(await gateway.queued('guarantees')).toEqual({ critical: 4, standard: 0, sheddable: 0 });
  expect(await refusal(ask('guarantees', 'a', 'a3', 'realtime'))).toEqual(FLOW_FULL);
  expect(await refusal(ask('guarantees', 'd', 'd1'))).toEqual(TOO_MANY_FLOWS);
});

it('evicts the newest sheddable request of the flow that lost none for longest, then of the next flow', async () => {
  const [, a2, , b2] = await full('eviction', [
    batch('eviction', 'a', 'a1'),
    batch('eviction', 'a', 'a2'),
    batch('eviction', 'b', 'b1'),
    batch('eviction', 'b', 'b2'),
  ]);
  user('eviction', 'c', 's1')();
  user('eviction', 'c', 's2')();
  expect(await refusal(a2!)).toEqual(EVICTED);
  expect(await refusal(b2!)).toEqual(EVICTED);
  await gateway.has('eviction', 1, 4);
  expect(await gateway.queued('eviction')).toEqual({ critical: 0, standard: 2, sheddable: 2 });
  // A batch evicts nobody.
  expect(await refusal(ask('eviction', 'a', 'a3', 'batch'))).toMatchObject({
    dropped: 'insufficient_flow_capacity',
  });
});

it('evicts the newest of the least urgent lines of a batch first', async () => {
  const line = (name: string, priority: number) => () =>
    gateway.line('urgency', name, 'a', {
      ...{ 'x-maas-username': 'workers', 'x-nightshift-priority': String(priority) },
    });
  const lines = await full('urgency', [
    line('relaxed1', 4),
    line('urgent', 2),
    line('relaxed2', 4),
    line('normal', 3),
  ]);
  // The urgent line would go last.
  for (const at of [2, 0, 3]) {
    user('urgency', 'c', `s${at}`)();
    expect(await refusal(lines[at]!)).toEqual(EVICTED);
  }
  expect(await gateway.queued('urgency')).toMatchObject({ standard: 3, sheddable: 1 });
});

it('evicts standard requests only for critical ones when nothing sheddable waits, and critical ones never', async () => {
  const [batchOne, userOne] = await full('standard', [
    batch('standard', 'a', 'b1'),
    user('standard', 'a', 's1'),
  ]);
  critical('standard', 'a', 'c1')();
  expect(await refusal(batchOne!)).toEqual(EVICTED);
  await gateway.has('standard', 1, 2);
  critical('standard', 'b', 'c2')();
  expect(await refusal(userOne!)).toEqual(EVICTED);
  expect(await refusal(ask('standard', 'c', 'c3', 'realtime'))).toEqual(TOO_MANY_FLOWS);
  expect(await refusal(ask('standard', 'c', 's2'))).toEqual(TOO_MANY_FLOWS);
  expect(await gateway.queued('standard')).toEqual({ critical: 2, standard: 0, sheddable: 0 });
});

it('lets a tenant without waiting lines queue one when the places of batches are taken', async () => {
  await full('sheddable', [batch('sheddable', 'a', 'a1'), batch('sheddable', 'a', 'a2')]);
  expect(await refusal(ask('sheddable', 'a', 'a3', 'batch'))).toEqual(FLOW_FULL);
  await gateway.queue('sheddable', [batch('sheddable', 'b', 'b1')]);
  expect(await refusal(ask('sheddable', 'b', 'b2', 'batch'))).toEqual(FLOW_FULL);
  await gateway.queue('sheddable', [user('sheddable', 'b', 's1')]);
});

it('refuses a tenant without waiting lines when the whole queue is full', async () => {
  await full('batches-full', [batch('batches-full', 'a', 'a1'), batch('batches-full', 'a', 'a2')]);
  expect(await refusal(ask('batches-full', 'b', 'b1', 'batch'))).toEqual(TOO_MANY_FLOWS);
});

it('gives batches 90 % of the places unless told otherwise', async () => {
  const lines = Array.from({ length: 9 }, (_, i) => batch('auto', 'a', `a${i}`));
  await full('auto', lines);
  expect(await refusal(ask('auto', 'a', 'a10', 'batch'))).toEqual(FLOW_FULL);
  await gateway.queue('auto', [user('auto', 'a', 's1')]);
});

it('lets only critical requests wait with enqueue: critical', async () => {
  await full('critical-only', [critical('critical-only', 'a', 'c1')]);
  const notCritical = dropped('not_critical', 'rejected-saturated');
  expect(await refusal(ask('critical-only', 'a', 's1'))).toEqual(notCritical);
  expect(await refusal(ask('critical-only', 'a', 'b1', 'batch'))).toEqual(notCritical);
  await gateway.has('critical-only', 1, 1);
});
