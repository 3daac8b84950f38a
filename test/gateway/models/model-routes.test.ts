import type { ServerResponse } from 'node:http';
import { until } from '../../support/until';
import { closeAll, startBackend, startGateway, type TestGateway } from '../gateway-fixtures';

afterEach(closeAll);

function json(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

const listing = (data: unknown) =>
  startBackend((_request, response) => json(response, { object: 'list', data }));

async function get(gateway: TestGateway, path: string) {
  const response = await fetch(`${gateway.url}${path}`);
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the test reads any member
  return { status: response.status, body: (await response.json()) as any };
}

it('lists the models that settings name, and those that backends of * have', async () => {
  const first = await listing([{ id: 'org/b', owned_by: 'org', max_model_len: 4_096 }, 'odd', {}]);
  const second = await listing([{ id: 'org/b' }, { id: 'm', owned_by: 'backend' }]);
  const gateway = await startGateway([first, second], {}, { models: ['m', '*'] });
  const { body } = await get(gateway, '/v1/models');
  const b = { created: 0, owned_by: 'org', id: 'org/b', max_model_len: 4_096, object: 'model' };
  const m = { id: 'm', object: 'model', created: 0, owned_by: 'nightshift' };
  expect(body).toEqual({ object: 'list', data: [m, b] });
  expect((await get(gateway, '/v1/models/org/b')).body).toEqual(b);
  expect((await get(gateway, '/v1/models/m')).body).toEqual(m);
  expect(await get(gateway, '/v1/models/c')).toMatchObject({
    status: 404,
    body: { error: { code: 'model_not_found', param: 'model' } },
  });
  const asked = first.received.filter(({ url }) => url === '/v1/models');
  expect(asked).toHaveLength(1);
});

it('does not wait for a backend that hangs for longer than its probe may take', async () => {
  const hangs = await startBackend();
  const answers = await listing([{ id: 'a' }]);
  const probe = { interval: '50ms', timeout: '100ms' };
  const gateway = await startGateway([hangs, answers], {}, { models: ['*'], probe });
  const startedMs = performance.now();
  const { body } = await get(gateway, '/v1/models');
  expect(body.data.map(({ id }: { id: string }) => id)).toEqual(['a']);
  expect(performance.now() - startedMs).toBeLessThan(4_000);
});

it('answers 503 for a model while no backend of * has listed any', async () => {
  const backend = await startBackend();
  const probe = { interval: '50ms', timeout: '100ms' };
  const gateway = await startGateway([backend], {}, { models: ['*'], probe });
  expect(await get(gateway, '/v1/models/a')).toMatchObject({
    status: 503,
    body: { error: { code: 'no_backends' } },
  });
  expect((await get(gateway, '/v1/models')).body).toEqual({ object: 'list', data: [] });
});

it('keeps listing the models of backends that went away', async () => {
  const backend = await listing([{ id: 'a' }]);
  const gateway = await startGateway([backend], {}, { models: ['*'] });
  expect((await get(gateway, '/v1/models/a')).status).toBe(200);
  backend.health = 503;
  const isAway = async () => !(await gateway.flow()).backends[0]!.ready;
  await until(isAway, 5_000, 'a backend that is away', 5);
  expect((await get(gateway, '/v1/models/a')).status).toBe(200);
});
