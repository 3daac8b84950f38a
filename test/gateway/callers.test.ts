import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ANSWER,
  ask,
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

const TOKEN = 'a-token-of-all-workers';
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-gateway-'));
  writeFileSync(join(folder, 'token'), `${TOKEN}\n`);
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(closeAll);

const ONE = { ...ONE_IN_FLIGHT, bands: { ...ONE_IN_FLIGHT.bands, between: 'strict' } };
const FAIRNESS = 'x-gateway-inference-fairness-id';

it('tells a worker when its request is dispatched, and keeps the token from the backend', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...ONE,
    worker_token_file: join(folder, 'token'),
  });
  const user = ask(gateway);
  await untilHeld(backend, 1);
  const worker = { authorization: `Bearer ${TOKEN}`, [FAIRNESS]: 'acme' };
  const line = ask(gateway, { service_tier: 'priority' }, worker);
  await untilQueued(gateway, 1);
  expect((await gateway.flow()).queued).toEqual({ critical: 0, standard: 0, sheddable: 1 });
  expect(line.interim).toEqual([]);
  backend.respond();
  await untilHeld(backend, 1);
  const { headers } = backend.held[0]!;
  expect([headers.authorization, headers[FAIRNESS]]).toEqual([undefined, 'acme']);
  backend.respond();
  expect((await line.answer).json()).toEqual(ANSWER);
  expect(line.interim).toEqual([102]);
  expect((await user.answer).status).toBe(200);
  expect(user.interim).toEqual([]);
});

it('ignores and removes the headers of workers without their token', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...ONE,
    worker_token_file: join(folder, 'token'),
  });
  const given = { authorization: 'Bearer another-key', [FAIRNESS]: 'acme' };
  const exchange = ask(gateway, {}, given);
  await untilHeld(backend, 1);
  const { headers } = backend.held[0]!;
  expect([headers.authorization, headers[FAIRNESS]]).toEqual(['Bearer another-key', undefined]);
  backend.respond();
  await exchange.answer;
  const tokens = (tenant: string) =>
    gateway.metric(
      `gateway_service_tokens_total{band="standard",tenant="${tenant}",process="gateway"}`,
    );
  expect([await tokens('default'), await tokens('acme')]).toEqual([15, undefined]);
});

it('sends requests of a higher band first, and lets no tenant exceed its own', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...ONE,
    auth: { mode: 'header' },
    tenants: { vip: { max_band: 'critical' } },
  });
  const as = (tenant: string, objective: string) => ({
    'x-maas-username': tenant,
    'x-gateway-inference-objective': objective,
  });
  ask(gateway, { user: 'first' }, as('vip', 'realtime'));
  await untilHeld(backend, 1);
  ask(gateway, { user: 'batch' }, as('vip', 'batch'));
  await untilQueued(gateway, 1);
  ask(gateway, { user: 'capped' }, as('other', 'realtime'));
  await untilQueued(gateway, 2);
  ask(gateway, { user: 'vip' }, as('vip', 'realtime'));
  await untilQueued(gateway, 3);
  expect((await gateway.flow()).queued).toEqual({ critical: 1, standard: 1, sheddable: 1 });
  const order: string[] = [];
  for (let i = 0; i < 4; i++) {
    await untilHeld(backend, 1);
    order.push((JSON.parse(backend.held[0]!.body.toString()) as { user: string }).user);
    backend.respond();
  }
  expect(order).toEqual(['first', 'vip', 'capped', 'batch']);
});
