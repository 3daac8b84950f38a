import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRegistry, type Registry, type RegistryConfig } from '../../inference/registry';
import { gatewayOf, requestOf, startLocalServer, type LocalServer } from './local-server';
import { sendTo } from '../support/promises-of-sending';

const never = new AbortController().signal;
let folder: string;
let server: LocalServer;
const opened: Registry[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'registry-'));
  writeFileSync(join(folder, 'gateway-key'), '  s3cret\n');
  writeFileSync(join(folder, 'empty-key'), '\n');
  server = await startLocalServer((_, response) => response.end('{}'));
});
afterAll(async () => {
  for (const registry of opened) await registry.close();
  await server.close();
  rmSync(folder, { recursive: true });
});

function open(config: Partial<RegistryConfig>): Registry {
  const registry = createRegistry({
    secrets_dir: folder,
    concurrency: {
      ...{ global: 4, per_model: 2, adaptive: true },
      ...{ lanes_per_model: 32, in_flight_bytes: 1e6 },
    },
    limits: {
      max_requests: 1,
      max_file_bytes: 1,
      max_inputs: 1,
      max_line_bytes: 1,
      max_json_depth: 1,
      max_json_tokens: 1,
      max_answer_bytes: 1_000,
      tenant: { max_files: 1, max_uploads: 1, max_upload_parts: 1 },
    },
    global_inference_gateway: undefined,
    model_gateways: undefined,
    ...config,
  });
  opened.push(registry);
  return registry;
}

describe('global mode', () => {
  it('routes every model to the one gateway, each with its own limit', async () => {
    const registry = open({ global_inference_gateway: gatewayOf(server.url) });
    const [a, b] = [registry.route('org/a:1')!, registry.route('b')!];
    expect([a.key, a.limiterKey, b.key, b.limiterKey]).toEqual([
      'default',
      'org/a:1',
      'default',
      'b',
    ]);
    expect(a.backend).toBe(b.backend);
    expect(a.breaker).toBe(b.breaker);
    expect(registry.isRouted('anything')).toBe(true);
    expect(await sendTo(a.backend, requestOf(), never)).toMatchObject({ status: 200 });
  });
});

describe('per-model mode', () => {
  it('routes listed models only', () => {
    const registry = open({ model_gateways: { a: gatewayOf(server.url) } });
    expect(registry.route('a')).toMatchObject({ key: 'a', limiterKey: 'a' });
    expect(registry.route('toString')).toBeNull();
    expect([registry.isRouted('a'), registry.isRouted('b')]).toEqual([true, false]);
  });

  it('shares connections and breaker between equal settings in any order', () => {
    const settings = gatewayOf(server.url, { max_concurrency: 7 });
    const reversed = Object.fromEntries(Object.entries(settings).reverse()) as typeof settings;
    const registry = open({
      model_gateways: { a: settings, b: { ...settings, max_retries: 9 }, c: reversed },
    });
    const [a, b, c] = ['a', 'b', 'c'].map((model) => registry.route(model)!);
    expect(c).toBe(registry.route('c'));
    expect(c!.key).toBe('a');
    expect([a!.limiterKey, c!.limiterKey]).toEqual(['a', 'c']);
    expect(a!.gatewayLimit).toMatchObject({ limit: 7 });
    expect(c!.gatewayLimit).toEqual(a!.gatewayLimit);
    expect(b!.gatewayLimit).not.toEqual(a!.gatewayLimit);
    expect(c!.backend).toBe(a!.backend);
    expect(c!.breaker).toBe(a!.breaker);
    expect(b!.backend).not.toBe(a!.backend);
    expect(registry.gateways.map(({ key, models }) => [key, models])).toEqual([
      ['a', ['a', 'c']],
      ['b', ['b']],
    ]);
  });
});

describe('the keys of gateways', () => {
  it('are read from the secrets folder or any file, without surrounding white space', async () => {
    const ways = [
      { api_key_name: 'gateway-key' },
      { api_key_file: join(folder, 'gateway-key') },
      {},
    ];
    for (const way of ways) {
      const registry = open({ global_inference_gateway: gatewayOf(server.url, way) });
      await sendTo(registry.route('m')!.backend, requestOf(), never);
    }
    const sent = server.received.slice(-3).map(({ headers }) => headers.authorization);
    expect(sent).toEqual(['Bearer s3cret', 'Bearer s3cret', undefined]);
  });

  it.each([
    [{ api_key_name: 'missing' }, /api_key_name: cannot read .*missing \(ENOENT\)/],
    [{ api_key_name: '../gateway-key' }, /api_key_name must be a file name without a folder/],
    [{ api_key_name: 'empty-key' }, /must contain exactly one key/],
    [
      { api_key_name: 'gateway-key', api_key_file: '/x' },
      /set only one of api_key_name and api_key_file/,
    ],
    [{ tls_ca_cert_file: '/nowhere' }, /tls_ca_cert_file: cannot read/],
    [
      { tls_client_cert_file: '/nowhere' },
      /set both of tls_client_cert_file and tls_client_key_file/,
    ],
  ])('and certificate files that are unusable are refused at start: %j', (settings, message) => {
    const config = { global_inference_gateway: gatewayOf(server.url, settings) };
    expect(() => open(config)).toThrow(expect.objectContaining({ code: 'config_invalid' }));
    expect(() => open(config)).toThrow(message);
  });
});

it('requires exactly one of the two gateway modes', () => {
  const gateway = gatewayOf(server.url);
  expect(() => open({})).toThrow(/exactly one of/);
  expect(() => open({ global_inference_gateway: gateway, model_gateways: { a: gateway } })).toThrow(
    /exactly one of/,
  );
});
