import { closeOutside, dropped, Outside, refusal } from './outside';
import { narrowPools, type NarrowPools } from './narrow-pools';

/** How much later than its time a request may end: a tick of 100 ms, and what a busy machine adds. */
const LATE_MS = 8_000;
const POOLS = {
  short: { queue_ttl: '400ms', batch_queue_ttl: '700ms' },
  deadline: {},
  away: { no_backend_ttl: '400ms' },
  'away-long': { no_backend_ttl: '30s', queue_ttl: '300ms' },
  back: { no_backend_ttl: '20s' },
} as const;

let gateway: Outside;
let backends: NarrowPools<keyof typeof POOLS>['backends'];

beforeAll(async () => {
  const narrow = await narrowPools(POOLS);
  const { pools } = narrow;
  backends = narrow.backends;
  gateway = await Outside.start({ gateway: { pools } });
}, 60_000);
afterAll(closeOutside);

async function fill(pool: keyof typeof POOLS): Promise<void> {
  gateway.ask(pool, 'first');
  await backends[pool].holds(1);
}

it('users wait for queue_ttl, batches for batch_queue_ttl, and neither is sent afterwards', async () => {
  await fill('short');
  const user = gateway.ask('short', 'user');
  const critical = gateway.ask('short', 'critical', {
    'x-gateway-inference-objective': 'realtime',
  });
  const batch = gateway.ask('short', 'batch', { 'x-gateway-inference-objective': 'batch' });
  for (const [asked, ttlMs] of [
    [user, 400],
    [critical, 400],
    [batch, 700],
  ] as const) {
    expect(await refusal(asked)).toEqual(dropped('queue_ttl_expired', 'rejected-saturated'));
    const { afterMs } = await asked.answer;
    expect(afterMs).toBeGreaterThanOrEqual(ttlMs);
    expect(afterMs).toBeLessThan(ttlMs + LATE_MS);
  }
  backends.short.respond();
  await gateway.has('short', 0, 0);
  expect(backends.short.came).toEqual(['first']);
});

describe('x-slo-ttft-ms', () => {
  beforeAll(() => fill('deadline'));

  it('ends the wait of a request with 504 and says that its time is over', async () => {
    const asked = gateway.ask('deadline', 'hurried', { 'x-slo-ttft-ms': '250' });
    expect(await refusal(asked)).toEqual(dropped('deadline_exceeded', 'rejected-ttl-expired', 504));
    const { afterMs } = await asked.answer;
    expect(afterMs).toBeGreaterThanOrEqual(250);
    expect(afterMs).toBeLessThan(250 + LATE_MS);
  });

  it('also ends the wait of a line of a batch', async () => {
    const asked = gateway.line('deadline', 'line', 'one', { 'x-slo-ttft-ms': '150' });
    expect(await refusal(asked)).toEqual(dropped('deadline_exceeded', 'rejected-ttl-expired', 504));
  });

  it('is no reason to send a request later than that', async () => {
    const asked = gateway.ask('deadline', 'over', { 'x-slo-ttft-ms': '0' });
    expect(await refusal(asked)).toEqual(dropped('deadline_exceeded', 'rejected-ttl-expired', 504));
    expect(backends.deadline.came).toEqual(['first']);
  });

  it('does not end a request that is being served', async () => {
    backends.deadline.respond();
    await gateway.has('deadline', 0, 0);
    const asked = gateway.ask('deadline', 'served', { 'x-slo-ttft-ms': '150' });
    await backends.deadline.holds(1);
    // A request that came later and waits for as long shows that the time has passed.
    await refusal(gateway.ask('deadline', 'witness', { 'x-slo-ttft-ms': '200' }));
    backends.deadline.respond('served');
    expect((await asked.answer).status).toBe(200);
  });
});

describe('while no backend is ready', () => {
  it('a request gets 503 after no_backend_ttl', async () => {
    await backends.away.close();
    await gateway.ask('away', 'finds-out').answer;
    const asked = gateway.ask('away', 'waits');
    expect(await refusal(asked)).toEqual(dropped('no_backends', 'rejected-no-endpoints'));
    const { headers } = await asked.answer;
    expect(headers['retry-after']).toBe('5');
    expect((await gateway.pool('away')).saturation).toBe(1);
  });

  it('its time to live may end earlier, for the same reason', async () => {
    await backends['away-long'].close();
    await gateway.ask('away-long', 'finds-out').answer;
    const asked = gateway.ask('away-long', 'waits');
    expect(await refusal(asked)).toEqual(dropped('no_backends', 'rejected-no-endpoints'));
    expect((await asked.answer).afterMs).toBeLessThan(300 + LATE_MS);
  });

  it('requests wait, and are sent when one comes back', async () => {
    await backends.back.close();
    const isAway = async () => (await gateway.pool('back')).backends[0]?.state === 'not_ready';
    await backends.back.drain(isAway);
    const asked = await gateway.queue('back', [
      () => gateway.ask('back', 'a'),
      () => gateway.ask('back', 'b'),
    ]);
    await backends.back.listen();
    await backends.back.drain(() => backends.back.came.length === 2);
    await backends.back.drain(async () => (await gateway.pool('back')).stock.requests === 0);
    for (const one of asked) expect((await one.answer).status).toBe(200);
    expect(backends.back.came).toEqual(['a', 'b']);
  });
});
