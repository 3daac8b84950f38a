import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { chunkWorld, type ChunkWorld } from '../activities/execute/chunk-world';
import { ok } from '../activities/execute/model-server';
import { until } from '../support/until';
import {
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  untilHeld,
  untilQueued,
  type Backend,
  type TestGateway,
} from './gateway-fixtures';

/** Lines of a batch that a real gateway holds. */

const TOKEN = 'a-token-of-all-workers';
const folder = mkdtempSync(join(tmpdir(), 'nightshift-held-'));
const tokenFile = join(folder, 'token');
writeFileSync(tokenFile, TOKEN);
afterAll(() => rmSync(folder, { recursive: true }));

let world: ChunkWorld;
afterEach(async () => {
  await world.close();
  await closeAll();
});

/** A gateway with one request in flight, and a worker with eight permits before it. */
async function openWorld(backend: Backend, lines: number, queue: Record<string, unknown> = {}) {
  const gateway = await startGateway([backend], {
    ...ONE_IN_FLIGHT,
    worker_token_file: tokenFile,
    fair_request_queue: queue,
  });
  const settings = { concurrency: { per_model: 8 }, batch: { cancel_grace: '60s' } };
  world = await chunkWorld(lines, ok, settings, {
    gateway: {
      url: gateway.url,
      api_key_file: tokenFile,
      request_timeout: '60s',
      max_retries: 0,
      send_fairness_header: true,
    },
  });
  return gateway;
}

const isQueueEmpty = async (gateway: TestGateway) => {
  const { queued, stock } = await gateway.flow();
  return queued.sheddable === 0 && stock.requests === 0;
};

it('are closed at once at a cancel, use no try, and never reach a backend', async () => {
  const backend = await startBackend();
  const gateway = await openWorld(backend, 20);
  const running = world.run();
  await untilHeld(backend, 1);
  await untilQueued(gateway, 7);
  world.lease.tell({ stopCause: 'cancelled' });
  const cancelledMs = performance.now();
  await untilQueued(gateway, 0);
  // Without reports they would wait for the grace of 60 s. On a calm machine this takes 5 ms.
  expect(performance.now() - cancelledMs).toBeLessThan(20_000);
  backend.respond();
  expect(await running).toMatchObject({ left: 'stopped', answered: 1, failed: 0 });
  await until(() => isQueueEmpty(gateway), 5_000, 'an empty stock');
  expect(backend.received.filter(({ url }) => url !== '/health')).toHaveLength(1);
  expect(await world.retries()).toEqual([]);
});

it('that are held for several times to live use no try, and are all answered', async () => {
  const backend = await startBackend();
  const gateway = await openWorld(backend, 12, { batch_queue_ttl: '300ms' });
  const env = new MockActivityEnvironment({ startToCloseTimeoutMs: 1_800_000 });
  const running = world.run({ boxMs: 500 }, env);
  await untilHeld(backend, 1);
  const expired = () =>
    gateway.metric('requests_expired{model="m",targetModel="m",process="gateway"}');
  await until(async () => ((await expired()) ?? 0) >= 20, 20_000, 'expired requests');
  // One backend that answers at last: every line gets its answer.
  let isOver = false;
  void running.finally(() => (isOver = true));
  await until(() => (backend.respond(), isOver), 20_000, 'the end of the chunk', 2);
  expect(await running).toMatchObject({ failed: 0 });
  expect(await world.retries()).toEqual([]);
});
