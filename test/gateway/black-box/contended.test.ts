import { until } from '../../support/until';
import { closeOutside, dropped, Outside, refusal } from './outside';
import { narrowPools, type NarrowPools } from './narrow-pools';

const POOLS = {
  full: { total_capacity: 1, flow_capacity: 1 },
  ttl: { queue_ttl: '200ms' },
  away: { no_backend_ttl: '200ms', queue_ttl: '5s' },
  'full-away': { total_capacity: 1, flow_capacity: 1, no_backend_ttl: '20s' },
  'critical-only': { enqueue: 'critical' },
  bytes: {},
} as const;

let gateway: Outside;
let backends: NarrowPools<keyof typeof POOLS>['backends'];

beforeAll(async () => {
  const narrow = await narrowPools(POOLS);
  const { pools } = narrow;
  backends = narrow.backends;
  gateway = await Outside.start({
    gateway: {
      ...{ pools, status_policy: 'contended' },
      ...{ max_body_bytes: '1KiB', sheddable_bytes: '2KiB', queue_bytes: '4KiB' },
    },
  });
  for (const name of Object.keys(POOLS) as (keyof typeof POOLS)[]) {
    gateway.ask(name, 'first');
    await backends[name].holds(1);
  }
}, 60_000);
afterAll(closeOutside);

const BATCH = { 'x-gateway-inference-objective': 'batch' };
const REALTIME = { 'x-gateway-inference-objective': 'realtime' };
/** A body of 900 bytes for the pool `bytes`. */
const LARGE = (() => {
  const empty = JSON.stringify({ model: 'bytes', prompt: '' });
  return Buffer.from(JSON.stringify({ model: 'bytes', prompt: 'x'.repeat(900 - empty.length) }));
})();
const large = (name: string, fields = {}) => gateway.ask('bytes', name, fields, LARGE);

describe('with status_policy: contended', () => {
  it('refuses for lack of places with 429', async () => {
    await gateway.queue('full', [() => gateway.ask('full', 'waits')]);
    expect(await refusal(gateway.ask('full', 'flow'))).toEqual(
      dropped('insufficient_flow_capacity', 'rejected-saturated', 429),
    );
    expect(await refusal(gateway.ask('full', 'critical', BATCH))).toEqual(
      dropped('too_many_flows', 'rejected-saturated', 429),
    );
  });

  it('ends the wait for a backend that is busy with 429', async () => {
    const expired = dropped('queue_ttl_expired', 'rejected-saturated', 429);
    expect(await refusal(gateway.ask('ttl', 'expires'))).toEqual(expired);
  });

  it('answers 503 to what is not critical', async () => {
    const refused = dropped('not_critical', 'rejected-saturated');
    expect(await refusal(gateway.ask('critical-only', 'user'))).toEqual(refused);
  });

  it('answers 503 while no backend is ready', async () => {
    await backends.away.close();
    await gateway.ask('away', 'finds-out').answer;
    const refused = dropped('no_backends', 'rejected-no-endpoints');
    expect(await refusal(gateway.ask('away', 'waits'))).toEqual(refused);
  });

  it('answers 503 for lack of places while no backend is ready', async () => {
    await backends['full-away'].close();
    await gateway.ask('full-away', 'finds-out').answer;
    await gateway.has('full-away', 0, 0);
    await gateway.queue('full-away', [() => gateway.ask('full-away', 'waits')]);
    const asked = gateway.ask('full-away', 'refused');
    expect(await refusal(asked)).toEqual(
      dropped('insufficient_flow_capacity', 'rejected-saturated'),
    );
  });
});

describe('bytes of bodies', () => {
  const FULL = dropped('queue_bytes_exceeded', 'rejected-saturated', 429);

  it('that wait are bounded, less for batches, which give way to users', async () => {
    const lines = await gateway.queue('bytes', [
      () => large('b1', BATCH),
      () => large('b2', BATCH),
    ]);
    expect(await refusal(large('b3', BATCH))).toEqual(FULL);
    await gateway.queue('bytes', [() => large('s1'), () => large('s2')]);
    expect((await gateway.pool('bytes')).queued_bytes).toBe(3_600);
    const users = [large('s3')];
    expect(await refusal(lines[1]!)).toEqual(dropped('evicted', 'evicted'));
    users.push(large('s4'));
    expect(await refusal(lines[0]!)).toEqual(dropped('evicted', 'evicted'));
    await gateway.has('bytes', 1, 4);
    expect(await refusal(large('s5'))).toEqual(FULL);
    expect((await gateway.pool('bytes')).queued_bytes).toBe(3_600);
    users.push(large('c1', REALTIME));
    const hasPlace = async () => (await gateway.queued('bytes')).critical === 1;
    await until(hasPlace, 5_000, 'the critical request', 2);
    expect(await gateway.queued('bytes')).toEqual({ critical: 1, standard: 3, sheddable: 0 });
    users.forEach((one) => one.hangUp());
  });

  it('beyond the size of one get 413, and do not count as drops', async () => {
    const asked = gateway.ask('bytes', 'too-large', {}, { prompt: 'x'.repeat(1_024) });
    expect(await refusal(asked)).toMatchObject({ status: 413, dropped: null, mayRetry: null });
  });
});
