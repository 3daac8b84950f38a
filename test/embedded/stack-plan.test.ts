import { createServer, type AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDataDir, type DataDir } from '../../embedded/data-dir';
import { createPortPicker, type PortPicker } from '../../embedded/locks/ports';
import { planStack, type PlanOptions } from '../../embedded/stack-plan';
import { s3Component } from '../../embedded/s3/s3-component';
import { loadConfig, type ConfigSources } from '../../platform/config';
import { openFilesystemStore } from '../../storage/objects/filesystem';
import { freePort } from '../support/free-port';

let folder: string;
let dir: DataDir;
let picker: PortPicker;

beforeEach(() => (picker = createPortPicker(join(folder, 'claims'))));
afterEach(() => picker.release());

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-plan-'));
  dir = openDataDir(join(folder, 'data'));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function plan(
  sources: ConfigSources = {},
  { simulator = true, ...own }: Partial<Pick<PlanOptions, 'simulator' | 'store' | 'dir'>> = {},
) {
  const overrides = { api: { port: await freePort() }, ...sources.overrides };
  return planStack({
    dir,
    sources: { env: {}, ...sources, overrides },
    simulator,
    apiPort: 'exactly',
    picker,
    ...own,
  });
}

/** The configuration of API and worker, loaded as they load it. */
function childConfig(settings: Record<string, unknown>) {
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify(settings));
  return loadConfig({ file, env: {}, needs: ['gateway', 'postgres'] });
}

describe('the plan of a stack', () => {
  it('embeds everything if no address is configured', async () => {
    const { embedded, settings, ports } = await plan();
    expect(embedded).toEqual({ temporal: true, postgres: true, simulator: true, s3: false });
    const config = childConfig(settings('postgres://u:p@127.0.0.1:1/n'));
    expect(config).toMatchObject({
      api: { port: ports.api },
      temporal: { address: `127.0.0.1:${ports.temporal}` },
      postgres: { url: 'postgres://u:p@127.0.0.1:1/n' },
      object_store: { type: 'filesystem', path: dir.objects },
      global_inference_gateway: { url: `http://127.0.0.1:${ports.simulator}` },
      worker: { drain_budget: 30_000 },
      log: { format: 'json' },
    });
  });

  it('ignores Temporal keys in the environment of an embedded server, and refuses them in the settings', async () => {
    const env = { TEMPORAL_API_KEY: 'secret', TEMPORAL_TLS: 'true', TEMPORAL_NAMESPACE: 'n' };
    const { settings } = await plan({ env });
    const { temporal } = childConfig(settings('postgres://u:p@127.0.0.1:1/n'));
    expect(temporal).toMatchObject({ namespace: 'n' });
    expect(temporal).not.toHaveProperty('api_key');
    expect(temporal.tls).toBeUndefined();
    const ours = { NIGHTSHIFT__TEMPORAL__API_KEY: 'secret' };
    await expect(plan({ env: ours })).rejects.toThrow(
      'temporal.api_key is set, but temporal.address is not',
    );
  });

  it('embeds no component whose address is configured', async () => {
    const env = {
      TEMPORAL_ADDRESS: 'temporal:7233',
      DATABASE_URL: 'postgres://db/n',
      NIGHTSHIFT__GLOBAL_INFERENCE_GATEWAY__URL: 'http://models',
    };
    const { embedded, settings } = await plan({ env });
    expect(embedded).toEqual({ temporal: false, postgres: false, simulator: false, s3: false });
    expect(childConfig(settings(null))).toMatchObject({
      temporal: { address: 'temporal:7233' },
      postgres: { url: 'postgres://db/n' },
      global_inference_gateway: { url: 'http://models' },
    });
  });

  it('keeps an object store that is configured, and lets the settings complete its own', async () => {
    const env = { NIGHTSHIFT__OBJECT_STORE: '{ type: s3, bucket: b }' };
    const { embedded, settings } = await plan({ env });
    expect(embedded.s3).toBe(false);
    expect(childConfig(settings('postgres://a/b')).object_store).toMatchObject({ bucket: 'b' });
    const path = join(folder, 'elsewhere');
    const own = await plan({ env: { NIGHTSHIFT__OBJECT_STORE__PATH: path } });
    expect(childConfig(own.settings('postgres://a/b')).object_store).toMatchObject({ path });
  });

  it('keeps a drain budget that is configured', async () => {
    const { settings } = await plan({ overrides: { worker: { drain_budget: '5m' } } });
    expect(childConfig(settings('postgres://a/b')).worker.drain_budget).toBe(300_000);
  });

  it('requires a gateway if the simulator is turned off', async () => {
    await expect(plan({}, { simulator: false })).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('global_inference_gateway: required'),
    });
  });

  it('gives every component its own port', async () => {
    const { ports } = await plan();
    expect(new Set(Object.values(ports)).size).toBe(Object.values(ports).length);
  });

  it('refuses an API port that is in use, or takes the next free one if it may', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const sources = { env: {}, overrides: { api: { port } } };
    const options = { dir, sources, simulator: true, picker };
    await expect(planStack({ ...options, apiPort: 'exactly' })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining('--port'),
    });
    const moved = await planStack({ ...options, apiPort: 'next free' });
    expect(moved.ports.api).toBeGreaterThan(port);
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('the flag --store', () => {
  const fresh = (name: string) => openDataDir(join(folder, name));

  it('embeds an S3 server, whose settings API and worker get', async () => {
    const { embedded, settings, ports } = await plan({}, { store: 's3' });
    expect(embedded.s3).toBe(true);
    expect(childConfig(settings('postgres://a/b')).object_store).toMatchObject({
      type: 's3',
      bucket: 'nightshift',
      endpoint: `http://127.0.0.1:${ports.s3}`,
      use_path_style: true,
      secret_access_key_file: join(dir.s3, 'secret-access-key'),
    });
  });

  it('is remembered by the data directory, and cannot change there', async () => {
    const used = fresh('used');
    s3Component({ program: 'none', folder: used.s3, port: 1 });
    expect((await plan({}, { dir: used })).embedded.s3).toBe(true);
    expect((await plan({}, { dir: used, store: 's3' })).embedded.s3).toBe(true);
    await expect(plan({}, { dir: used, store: 'filesystem' })).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('leave out --store, or choose another --data-dir'),
    });

    const plain = fresh('plain');
    await (await openFilesystemStore({ path: plain.objects })).storeId();
    expect((await plan({}, { dir: plain })).embedded.s3).toBe(false);
    await expect(plan({}, { dir: plain, store: 's3' })).rejects.toThrow('in the store filesystem');
  });

  it('contradicts an object store in the settings', async () => {
    const env = { NIGHTSHIFT__OBJECT_STORE: '{ type: s3, bucket: b }' };
    const refused = { code: 'config_invalid', message: expect.stringContaining('remove one') };
    await expect(plan({ env }, { store: 's3' })).rejects.toMatchObject(refused);
  });
});

describe('a data directory', () => {
  it('that cannot be created is an error with advice', () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    expect(() => openDataDir(file)).toThrow(
      expect.objectContaining({
        code: 'data_dir_unusable',
        message: expect.stringMatching(/a-file cannot be used as data directory .*--data-dir/),
      }),
    );
    expect(() => openDataDir('/proc/nightshift')).toThrow(
      expect.objectContaining({ code: 'data_dir_unusable' }),
    );
  });

  it('can be opened repeatedly', () => {
    expect(openDataDir(dir.path)).toEqual(dir);
  });
});
