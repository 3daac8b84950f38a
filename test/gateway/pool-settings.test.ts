import { runGateway } from '../../gateway/main';
import { loadConfig } from '../../platform/config';
import {
  ask,
  closeAll,
  onClose,
  startBackend,
  startGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

afterEach(closeAll);

const four = { watermark_per_backend: 4, lower_bound_per_backend: 4, upper_bound_per_backend: 4 };

it('lets several gateways have no more in flight together than one may have', async () => {
  const backend = await startBackend();
  const settings = {
    replicas: 2,
    request_queue_controller: four,
    bands: { ceilings: [1, 1, 1] },
  };
  const gateways = [
    await startGateway([backend], settings),
    await startGateway([backend], settings),
  ];
  for (const gateway of gateways) for (let i = 0; i < 5; i++) ask(gateway);
  for (const gateway of gateways) await untilQueued(gateway, 3);
  await untilHeld(backend, 4);
});

it('applies the settings of a pool to its requests, and those of the gateway to others', async () => {
  const [first, second] = [await startBackend(), await startBackend()];
  const one = { watermark_per_backend: 1, lower_bound_per_backend: 1, upper_bound_per_backend: 1 };
  const config = loadConfig({
    env: {},
    needs: ['pools'],
    overrides: {
      log: { level: 'error' },
      gateway: {
        ...{ port: 0, observability_port: 0 },
        fair_request_queue: { queue_ttl: '80ms' },
        request_queue_controller: one,
        pools: {
          short: { models: ['m'], backends: [{ url: first.url }] },
          long: {
            ...{ models: ['other'], backends: [{ url: second.url }] },
            fair_request_queue: { enqueue: 'critical' },
          },
        },
      },
    },
  });
  const gateway = await runGateway(config);
  onClose(() => gateway.close());
  ask(gateway);
  ask(gateway, { model: 'other' });
  await untilHeld(first, 1);
  await untilHeld(second, 1);
  expect((await ask(gateway).answer).json().error?.code).toBe('queue_ttl_expired');
  expect((await ask(gateway, { model: 'other' }).answer).json().error?.code).toBe('not_critical');
});
