import fs from 'node:fs/promises';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { runApi } from '../../api/main';
import { configSchema } from '../../platform/config-schema';
import { BOUNDARY, batchForm, formBytes } from '../support/api';
import { freePort } from '../support/free-port';
import { POSTGRES_START_MS, type TestDatabase, withDatabase } from '../support/postgres';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await withDatabase();
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'nightshift-main-'));
}, POSTGRES_START_MS);
afterAll(async () => {
  await database.close();
  await fs.rm(folder, { recursive: true, force: true });
});

function config(change: Record<string, unknown> = {}) {
  return configSchema.parse({
    postgres: { url: database.url },
    // Nothing listens there. The API must start and answer all the same.
    temporal: { address: '127.0.0.1:1' },
    object_store: { type: 'filesystem', path: path.join(folder, 'store') },
    log: { level: 'error', format: 'json' },
    ...change,
    api: { port: 0, observability_port: 0, ...(change['api'] as object | undefined) },
  });
}

it('serves files and batches while Temporal is down, and can be closed twice', async () => {
  const api = await runApi(config());
  try {
    expect((await fetch(`${api.url}/ready`)).status).toBe(200);
    const file = await fetch(`${api.url}/v1/files`, {
      method: 'POST',
      headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      body: new Uint8Array(formBytes(batchForm())),
    });
    const { id } = (await file.json()) as { id: string };
    const batch = await fetch(`${api.url}/v1/batches`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        input_file_id: id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      }),
    });
    expect(batch.status).toBe(200);
    expect(await batch.json()).toMatchObject({ status: 'validating', input_file_id: id });
  } finally {
    await Promise.all([api.close(), api.close()]);
  }
  await expect(fetch(`${api.url}/health`)).rejects.toThrow();
});

it('reports health, readiness and metrics on a separate port', async () => {
  const port = await freePort();
  const api = await runApi(config({ api: { observability_port: port } }));
  try {
    for (const page of ['health', 'ready', 'metrics']) {
      expect((await fetch(`http://127.0.0.1:${port}/${page}`)).status).toBe(200);
    }
  } finally {
    await api.close();
  }
});

it('reports a port that is in use, and leaves nothing open', async () => {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const start = runApi(config({ api: { port } }));
    await expect(start).rejects.toMatchObject({ code: 'port_in_use' });
    await expect(start).rejects.toThrow(`port ${port} is already in use`);
    const sideways = runApi(config({ api: { observability_port: port } }));
    await expect(sideways).rejects.toThrow('api.observability_port');
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});

it('names its host setting if the address is not one of this machine', async () => {
  const api = { host: '192.0.2.1' };
  const start = runApi(config({ api, auth: { allow_public_bind: true } }));
  await expect(start).rejects.toMatchObject({ code: 'config_invalid' });
  await expect(start).rejects.toThrow(
    'api.host (--host): "192.0.2.1" is not an address of this machine',
  );
});

it('refuses a public address without authentication, unless the setting allows it', async () => {
  const open = { host: '0.0.0.0' };
  await expect(runApi(config({ api: open }))).rejects.toMatchObject({ code: 'config_invalid' });
  const forced = await runApi(config({ api: open, auth: { allow_public_bind: true } }));
  await forced.close();
  const header = await runApi(config({ api: open, auth: { mode: 'header' } }));
  await header.close();
});

it('refuses an object store that belongs to another database', async () => {
  await (await runApi(config())).close();
  const other = { type: 'filesystem', path: path.join(folder, 'other') };
  await expect(runApi(config({ object_store: other }))).rejects.toMatchObject({
    code: 'store_mismatch',
  });
});

it('refuses a database without tables', async () => {
  const empty = await withDatabase();
  await empty.pool.query('drop schema public cascade; create schema public');
  await expect(runApi(config({ postgres: { url: empty.url } }))).rejects.toMatchObject({
    code: 'schema_outdated',
  });
  await empty.close();
});
