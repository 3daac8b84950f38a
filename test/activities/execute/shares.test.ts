import type { AcquireRequest } from '../../../inference/dispatcher';
import type { Answer } from '../../inference/local-server';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { BATCH_ID, chunkWorld } from './chunk-world';
import { gate, nameOf, ok } from './model-server';

const LINES = 200;
/** Tokens of output of the two tenants. The first one has the first half of the lines. */
const OUTPUT = { large: 50, small: 10 };
let world: ChunkWorld;
afterEach(() => world.close());

const tenantOf = (name: string): 'large' | 'small' =>
  Number(name.slice(1)) < LINES / 2 ? 'large' : 'small';

/** Answers in the next turn of the event loop, so that permits are always scarce. */
const withUsage: Answer = (request, response) => {
  const tokens = OUTPUT[tenantOf(nameOf(request))];
  const usage = { prompt_tokens: 0, completion_tokens: tokens, total_tokens: tokens };
  setImmediate(() => response.end(JSON.stringify({ model: 'm', usage })));
};

it.each([
  ['equal', {}, 0.5],
  ['3 to 1', { large: 3 }, 0.75],
])('gives tenants tokens by their weights, %s, while both wait', async (_what, tenants, part) => {
  const settings = { concurrency: { per_model: 4 }, fairness: { tenants } };
  const server = gate(withUsage);
  world = await chunkWorld(LINES, server.answer, settings);
  const half = LINES / 2;
  const chunks = [
    world.run({ from: 0, to: half, tenant: 'large' }),
    world.run({ from: half, to: LINES, tenant: 'small' }),
  ];
  await until(() => world.waiting() === 2, 5_000, 'both chunks waiting for a permit');
  server.open();
  for (const chunk of await Promise.all(chunks)) expect(chunk).toMatchObject({ completed: half });
  const order = world.seen().map(tenantOf);
  // Until the first one of them has nothing left that waits.
  const end = Math.min(order.lastIndexOf('large'), order.lastIndexOf('small'));
  const counted = order.slice(0, end);
  const tokens = (of: string) =>
    counted.filter((tenant) => tenant === of).reduce((sum, tenant) => sum + OUTPUT[tenant], 0);
  const share = tokens('large') / (tokens('large') + tokens('small'));
  expect(share).toBeGreaterThan(part - 0.1);
  expect(share).toBeLessThan(part + 0.1);
});

it.each([true, false])(
  'asks for permits for its tenant and batch, and tells whether the gateway divides: %s',
  async (divides) => {
    const asked: AcquireRequest[] = [];
    const charged: number[] = [];
    world = await chunkWorld(
      1,
      ok,
      {},
      {
        gateway: { send_fairness_header: divides },
        replace: ({ dispatcher }) => {
          const tryAcquire = dispatcher.tryAcquire.bind(dispatcher);
          dispatcher.tryAcquire = (request) => {
            asked.push(request);
            const permit = tryAcquire(request);
            const used = permit?.used.bind(permit);
            const onUsed = (cost: number): void => {
              charged.push(cost);
              used?.(cost);
            };
            return permit && Object.assign(permit, { used: onUsed });
          };
          return { dispatcher };
        },
      },
    );
    expect(await world.run({ tenant: 'acme' })).toMatchObject({ completed: 1 });
    expect(asked).toMatchObject([{ tenant: 'acme', batch: BATCH_ID, divides }]);
    expect(asked[0]?.cost).toBeGreaterThan(2 * 64);
    // Two tokens of input and three of output.
    expect(charged).toEqual([2 + 2 * 3]);
  },
);
