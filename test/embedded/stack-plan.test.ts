import { createServer, type AddressInfo } from 'node:net';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDataDir, type DataDir } from '../../embedded/data-dir';
import { SIMULATOR_SLOTS } from '../../embedded/gateway-plan';
import { createPortPicker, type PortPicker } from '../../embedded/locks/ports';
import { planStack, type PlanOptions } from '../../embedded/stack-plan';
import { s3Component } from '../../embedded/s3/s3-component';
import { readWorkerToken } from '../../gateway/requests/caller';
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
  {
    simulator = true,
    gateway = true,
    ...own
  }: Partial<Pick<PlanOptions, 'simulator' | 'gateway' | 'store' | 'dir'>> = {},
) {
  const overrides = { api: { port: await freePort() }, ...sources.overrides };
  return planStack({
    dir,
    sources: { env: {}, ...sources, overrides },
    simulator,
    gateway,
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
    expect(embedded).toEqual({
      temporal: true,
      postgres: true,
      simulator: true,
      gateway: true,
      s3: false,
    });
    const config = childConfig(settings('postgres://u:p@127.0.0.1:1/n'));
    expect(config).toMatchObject({
      api: { port: ports.api },
      temporal: { address: `127.0.0.1:${ports.temporal}` },
      postgres: { url: 'postgres://u:p@127.0.0.1:1/n' },
      object_store: { type: 'filesystem', path: dir.objects },
      global_inference_gateway: { url: `http://127.0.0.1:${ports.gateway}` },
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
    expect(Object.values(embedded)).not.toContain(true);
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
    const options = { dir, sources, simulator: true, gateway: true, picker };
    await expect(planStack({ ...options, apiPort: 'exactly' })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining('--port'),
    });
    const moved = await planStack({ ...options, apiPort: 'next free' });
    expect(moved.ports.api).toBeGreaterThan(port);
    await new Promise((resolve) => server.close(resolve));
  });
});

const POOLS = { main: { models: ['*'], backends: [{ url: 'http://vllm:8000' }] } };
const MODEL_SERVER = { global_inference_gateway: { url: 'http://models' } };

/** What a stack with these settings starts of simulator and gateway, and the settings of its processes. */
async function modelSide(settings: Record<string, unknown>, flags: { gateway?: boolean } = {}) {
  const planned = await plan({ overrides: settings }, flags);
  const { simulator, gateway } = planned.embedded;
  const config = childConfig(planned.settings('postgres://a/b'));
  return { simulator, gateway, config, ports: planned.ports };
}

describe('the gateway of a stack', () => {
  it('is between the worker and the simulator, with a token that only the owner can read', async () => {
    const { config, ports } = await modelSide({});
    const { gateway, global_inference_gateway: ofWorker, concurrency } = config;
    expect(gateway).toMatchObject({
      port: ports.gateway,
      observability_port: ports.gatewayObservability,
      pools: {
        simulator: {
          models: ['*'],
          backends: [{ url: `http://127.0.0.1:${ports.simulator}` }],
          adaptive: { initial: SIMULATOR_SLOTS, max: SIMULATOR_SLOTS },
        },
      },
      worker_token_file: dir.workerToken,
    });
    expect(ofWorker).toMatchObject({
      url: `http://127.0.0.1:${ports.gateway}`,
      api_key_file: dir.workerToken,
      request_timeout: 360_000,
      inference_objective: 'batch',
      send_fairness_header: true,
    });
    expect(concurrency).toMatchObject({
      global: 2 * SIMULATOR_SLOTS,
      per_model: 2 * SIMULATOR_SLOTS,
    });
    expect(statSync(dir.workerToken).mode & 0o777).toBe(0o600);
    expect(readWorkerToken(dir.workerToken)(readFileSync(dir.workerToken, 'utf8').trim())).toBe(
      true,
    );
  });

  it('is left out with --no-gateway, even if pools are configured', async () => {
    for (const settings of [{}, { gateway: { pools: POOLS } }]) {
      const { simulator, gateway, config, ports } = await modelSide(settings, { gateway: false });
      expect({ simulator, gateway }).toEqual({ simulator: true, gateway: false });
      expect(config.global_inference_gateway?.url).toBe(`http://127.0.0.1:${ports.simulator}`);
    }
  });

  it('has the pools that are configured, instead of the simulator', async () => {
    const other = { models: ['m'], backends: [{ url: 'http://other:8000' }] };
    const slow = { ...other, fair_request_queue: { batch_queue_ttl: '8m' } };
    const pools = { main: { ...POOLS.main, request_timeout: '10m' }, slow };
    const { simulator, gateway, config, ports } = await modelSide({ gateway: { pools } });
    expect({ simulator, gateway }).toEqual({ simulator: false, gateway: true });
    expect(Object.keys(config.gateway.pools)).toEqual(['main', 'slow']);
    expect(config.global_inference_gateway).toMatchObject({
      url: `http://127.0.0.1:${ports.gateway}`,
      // Of the slow pool: more than twice the time in its queue.
      request_timeout: 961_000,
    });
    // Only of the simulator it is known how much it can run.
    expect(config.concurrency.per_model).toBe(10);
  });

  it('runs beside a configured gateway of the worker if pools are configured', async () => {
    const settings = { ...MODEL_SERVER, gateway: { pools: POOLS } };
    const { simulator, gateway, config } = await modelSide(settings);
    expect({ simulator, gateway }).toEqual({ simulator: false, gateway: true });
    expect(config.global_inference_gateway?.url).toBe('http://models');
  });

  it('does not start without a pool', async () => {
    const { simulator, gateway } = await modelSide(MODEL_SERVER);
    expect({ simulator, gateway }).toEqual({ simulator: false, gateway: false });
  });

  it('shares a configured worker token with the worker, and keeps configured permits', async () => {
    const settings = {
      gateway: { worker_token_file: '/etc/token', host: '::1' },
      concurrency: { per_model: 3 },
    };
    const { config, ports } = await modelSide(settings);
    expect(config.global_inference_gateway).toMatchObject({
      url: `http://[::1]:${ports.gateway}`,
      api_key_file: '/etc/token',
    });
    expect(config.concurrency.per_model).toBe(3);
  });

  it('takes the next free port, or exactly the one that is set', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await expect(plan({ overrides: { gateway: { port } } })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining('gateway.port'),
    });
    await new Promise((resolve) => server.close(resolve));
    expect((await plan({ overrides: { gateway: { port } } })).ports.gateway).toBe(port);
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
