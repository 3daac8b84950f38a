import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKeyRepository } from '../../storage/postgres/api-keys';
import { useDatabase } from '../support/postgres';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { ask, type Backend, closeAll, startBackend, startGateway } from './gateway-fixtures';

const TOKEN = 'a-token-of-all-workers';
const NOW_SEC = 1_700_000_000;

const database = useDatabase('api_keys');
let folder: string;
let proxy: TcpProxy;
let backend: Backend;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-gateway-'));
  writeFileSync(join(folder, 'token'), TOKEN);
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(async () => {
  proxy = await startTcpProxy(Number(new URL(database.url).port));
  backend = await startBackend((_request, response) => void response.end('{}'));
});
afterEach(async () => {
  await closeAll();
  await proxy.close();
});

/** A gateway that reaches PostgreSQL through the proxy. */
function start() {
  const url = new URL(database.url);
  url.hostname = '127.0.0.1';
  url.port = String(proxy.port);
  return startGateway([backend], {
    auth: { mode: 'api_key' },
    postgres: { url: url.href },
    worker_token_file: join(folder, 'token'),
  });
}

const repository = () => createApiKeyRepository(database.pool);
const make = (tenant: string) =>
  repository().create({ tenant, name: 'a test', expiresAtSec: null, nowSec: NOW_SEC });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const posts = () => backend.received.filter(({ method }) => method === 'POST');

it('serves requests with a valid key as its tenant, and refuses all others', async () => {
  const [ann, revoked] = [await make('ann'), await make('bob')];
  await repository().revoke(revoked.record.id, NOW_SEC);
  const gateway = await start();
  const statusOf = async (headers: Record<string, string>) => {
    const { status, json } = await ask(gateway, {}, headers).answer;
    return [status, status === 200 ? null : json().error?.code];
  };
  expect(await statusOf({})).toEqual([401, null]);
  expect(await statusOf(bearer(`${ann.key}x`))).toEqual([401, 'invalid_api_key']);
  expect(await statusOf(bearer(revoked.key))).toEqual([401, 'invalid_api_key']);
  expect(await statusOf(bearer('another-token-of-workers'))).toEqual([401, 'invalid_api_key']);
  expect(posts()).toEqual([]);
  expect(await statusOf(bearer(ann.key))).toEqual([200, null]);
  const flows = async () => (await gateway.flow()).bands.standard.dispatched.bypass;
  await until(async () => (await flows()) === 1, 5_000, 'a dispatched request', 5);
});

it('keeps the keys of clients from backends, and lets workers name tenants without a key', async () => {
  const { key } = await make('ann');
  const gateway = await start();
  await ask(gateway, {}, bearer(key)).answer;
  const worker = { ...bearer(TOKEN), 'x-gateway-inference-fairness-id': 'acme' };
  expect((await ask(gateway, {}, worker).answer).status).toBe(200);
  const [first, second] = posts();
  expect([first?.headers.authorization, second?.headers.authorization]).toEqual([
    undefined,
    undefined,
  ]);
  expect(second?.headers['x-gateway-inference-fairness-id']).toBe('acme');
  const { dispatched } = (await gateway.flow()).bands.sheddable;
  expect(dispatched.bypass).toBe(1);
});

it('shows in dependency_up that PostgreSQL is away, and is ready all the same', async () => {
  await proxy.become('refuse');
  const gateway = await start();
  const series = 'dependency_up{dependency="postgres",process="gateway"}';
  await until(async () => (await gateway.metric(series)) === 0, 5_000, 'the failed check', 5);
  expect((await fetch(`${gateway.adminUrl}/ready`)).status).toBe(200);
});

it('serves known keys while PostgreSQL is away, and unknown ones when it is back', async () => {
  const [known, unknown] = [await make('ann'), await make('bob')];
  const gateway = await start();
  expect((await ask(gateway, {}, bearer(known.key)).answer).status).toBe(200);
  await proxy.become('refuse');
  expect((await ask(gateway, {}, bearer(known.key)).answer).status).toBe(200);
  const refused = await ask(gateway, {}, bearer(unknown.key)).answer;
  expect([refused.status, refused.headers['x-nightshift-dropped']]).toEqual([503, undefined]);
  expect(refused.headers['retry-after']).toMatch(/^\d+$/);
  expect((await ask(gateway, {}, bearer(TOKEN)).answer).status).toBe(200);
  await proxy.become('pass');
  const isBack = async () => (await ask(gateway, {}, bearer(unknown.key)).answer).status === 200;
  await until(isBack, 10_000, 'an answer for the other key', 20);
});
