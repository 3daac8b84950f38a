import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isNightshiftError } from '../../core/errors';
import { findSettings, loadConfig, mergeSettings, withoutSettings } from '../../platform/config';
import { printConfig } from '../../platform/config-print';
import { redactConfig, redactUrl } from '../../platform/config-redact';

const GATEWAY = { global_inference_gateway: { url: 'http://127.0.0.1:8001' } };
let folder: string;

beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-config-'))));
afterAll(() => rmSync(folder, { recursive: true }));

function file(text: string): string {
  const path = join(folder, 'nightshift.yaml');
  writeFileSync(path, text);
  return path;
}

function problemsOf(options: Parameters<typeof loadConfig>[0]): string[] {
  try {
    loadConfig({ env: {}, ...options });
  } catch (error) {
    if (!isNightshiftError(error, 'config_invalid')) throw error;
    return error.message.split('\n  ').slice(1);
  }
  return [];
}

describe('the configuration', () => {
  it('requires nothing but one gateway, whose other settings have defaults', () => {
    const config = loadConfig({ env: {}, overrides: GATEWAY });
    expect(config.global_inference_gateway).toMatchObject({
      request_timeout: 300_000,
      max_retries: 3,
      initial_backoff: 1_000,
      max_backoff: 60_000,
    });
    expect(config.concurrency).toMatchObject({ global: 100, per_model: 10 });
    expect(config.limits.max_file_bytes).toBe(200 * 1024 ** 2);
  });

  it('lets the environment override the file, and flags override both', () => {
    const path = file(
      'api: { port: 1, host: 127.0.0.2 }\nconcurrency: { global: 7, per_model: 8 }\n',
    );
    const env = { NIGHTSHIFT__API__PORT: '2', NIGHTSHIFT__CONCURRENCY__GLOBAL: '200' };
    const overrides = { ...GATEWAY, api: { port: 3, host: undefined } };
    const config = loadConfig({ file: path, env, overrides });
    expect(config.api).toMatchObject({ port: 3, host: '127.0.0.2' });
    expect(config.concurrency).toMatchObject({ global: 200, per_model: 8 });
  });

  it('accepts exactly the weights that Temporal accepts', () => {
    const weights = (of: unknown) => ({
      overrides: { ...GATEWAY, fairness: of },
    });
    const env = { NIGHTSHIFT__FAIRNESS__TENANTS: '{"acme":3,"b":0.001}' };
    const { fairness } = loadConfig({ env, overrides: GATEWAY });
    expect(fairness).toEqual({ default: 1, tenants: { acme: 3, b: 0.001 }, models: {} });
    for (const wrong of [0, -1, 1001, 'much', '', null, true, []]) {
      const asWrong = 'expected a number between 0.001 and 1000';
      const all = { default: wrong, tenants: { acme: wrong }, models: { m: wrong } };
      expect(problemsOf(weights(all))).toEqual([
        expect.stringContaining(`fairness.default: ${asWrong}`),
        expect.stringContaining(`fairness.tenants.acme: ${asWrong}`),
        expect.stringContaining(`fairness.models.m: ${asWrong}`),
      ]);
    }
  });

  it('reads the settings of tracing, and refuses shares and protocols that do not exist', () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otlp:4318',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      NIGHTSHIFT__TRACING__REQUEST_RATIO: '0.5',
    };
    expect(loadConfig({ env, overrides: GATEWAY }).tracing).toEqual({
      otlp_endpoint: 'http://otlp:4318',
      protocol: 'http/protobuf',
      sample_ratio: 1,
      request_ratio: 0.5,
      slow_request: 60_000,
    });
    for (const wrong of [-1, 1.5, 'much', '', null]) {
      expect(problemsOf({ overrides: { ...GATEWAY, tracing: { sample_ratio: wrong } } })).toEqual([
        expect.stringContaining('tracing.sample_ratio: expected a number between 0 and 1'),
      ]);
    }
    expect(problemsOf({ overrides: { ...GATEWAY, tracing: { protocol: 'http/json' } } })).toEqual([
      expect.stringContaining('tracing.protocol'),
    ]);
  });

  it('refuses an unknown key of a gateway', () => {
    const entry = {
      ...{ url: 'http://127.0.0.1:8001', request_timeout: '5m', max_retries: 3 },
      ...{ initial_backoff: '1s', max_backoff: '60s' },
    };
    expect(problemsOf({ overrides: { model_gateways: { m: entry } } })).toEqual([]);
    expect(
      problemsOf({ overrides: { global_inference_gateway: { ...entry, retries: 1 } } }),
    ).toEqual([expect.stringContaining('global_inference_gateway.retries: unknown key')]);
    expect(
      problemsOf({ overrides: { model_gateways: { m: { ...entry, max_retry: 1 } } } }),
    ).toEqual([expect.stringContaining('model_gateways.m.max_retry: unknown key')]);
  });

  it('lets the file override fallbacks', () => {
    const path = file('temporal: { address: "there:1" }\n');
    const fallbacks = { ...GATEWAY, temporal: { address: 'here:1', namespace: 'n' } };
    expect(loadConfig({ file: path, env: {}, fallbacks }).temporal).toMatchObject({
      address: 'there:1',
      namespace: 'n',
    });
  });

  it('reads the common variables of Temporal and PostgreSQL with lower precedence than its own', () => {
    const env = {
      TEMPORAL_ADDRESS: 'temporal:7233',
      TEMPORAL_NAMESPACE: 'ns',
      TEMPORAL_API_KEY: 'true',
      PGHOST: 'db',
      PGUSER: 'me',
      PGPASSWORD: 'p@ss',
      PGDATABASE: 'mine',
    };
    const config = loadConfig({ env, overrides: GATEWAY });
    expect(config.temporal).toMatchObject({
      address: 'temporal:7233',
      namespace: 'ns',
      api_key: 'true',
    });
    expect(config.postgres.url).toBe('postgres://me:p%40ss@db:5432/mine');
    const both = { ...env, DATABASE_URL: 'postgres://a/b', NIGHTSHIFT__TEMPORAL__ADDRESS: 'own:1' };
    const own = loadConfig({ env: both, overrides: GATEWAY });
    expect(own.postgres.url).toBe('postgres://a/b');
    expect(own.temporal.address).toBe('own:1');
  });

  it('reads booleans, lists and objects from the environment, and ignores empty variables', () => {
    const env = {
      NIGHTSHIFT__PASS_THROUGH_HEADERS: '["X-A", "X-B"]',
      NIGHTSHIFT__TEMPORAL__TLS: 'true',
      NIGHTSHIFT__API__PORT: '',
      NIGHTSHIFT__MODEL_GATEWAYS:
        '{"Llama/3": {"url": "http://a", "request_timeout": "1m", "max_retries": 1, "initial_backoff": "1s", "max_backoff": "2s"}}',
    };
    const config = loadConfig({ env });
    expect(config.pass_through_headers).toEqual(['X-A', 'X-B']);
    expect(config.temporal.tls).toBe(true);
    expect(config.api.port).toBe(8000);
    expect(config.model_gateways?.['Llama/3']?.request_timeout).toBe(60_000);
  });

  const GATEWAY_YAML = 'global_inference_gateway: { url: "http://g" }\n';
  it.each([
    [
      'a missing unit',
      'worker:\n  heartbeat_timeout: 10',
      2,
      'worker.heartbeat_timeout: expected a duration such as 250ms, 4s, 5m, 24h, got 10',
    ],
    [
      'a word for a number',
      'concurrency: { global: many }',
      1,
      'concurrency.global: expected a whole number of at least 1, got "many"',
    ],
    [
      'an empty text for a number',
      "api: { port: '' }",
      1,
      'api.port: expected a port between 0 and 65535, got ""',
    ],
    [
      'a size with a foreign unit',
      'limits: { max_file_bytes: 2MB }',
      1,
      'limits.max_file_bytes: expected a size in bytes or such as 200MiB, got "2MB"',
    ],
    [
      'a misspelt key',
      'api:\n  host: 127.0.0.1\n  prot: 80',
      3,
      'api.prot: unknown key, did you mean port?',
    ],
    [
      'a key at the wrong place',
      'per_model: 4',
      1,
      'per_model: unknown key, did you mean concurrency.per_model?',
    ],
    [
      'a key like no other',
      'auth: { zebra: 1 }',
      1,
      'auth.zebra: unknown key, known here: mode, tenant_header, require_tenant, allow_public_bind',
    ],
    [
      'a word that is no choice',
      'auth: { mode: open }',
      1,
      'auth.mode: expected one of none, header, api_key, got "open"',
    ],
    [
      'a list that is none',
      'batch: { endpoints: /v1/x }',
      1,
      'batch.endpoints: expected array, got "/v1/x"',
    ],
    [
      'a key of the other object store',
      'object_store: { type: filesystem, path: x, bucket: b }',
      1,
      'object_store.bucket: unknown key, did you mean',
    ],
    [
      'a public address without authentication',
      'api: { host: 0.0.0.0 }',
      1,
      'api.host: auth.mode is none',
    ],
    [
      'no address at all',
      "api: { host: '' }",
      1,
      'api.host: expected an address to listen on, such as 127.0.0.1, got ""',
    ],
    ['a worker without a role', 'worker: { roles: [] }', 1, 'worker.roles: expected batch, exec'],
    [
      'an unknown role',
      'worker: { roles: [batch, send] }',
      1,
      'worker.roles.1: expected one of batch, exec, got "send"',
    ],
    ['a role twice', 'worker: { roles: [exec, exec] }', 1, 'worker.roles: names a role twice'],
    [
      'lines longer than files',
      'limits: { max_file_bytes: 10, max_line_bytes: 11 }',
      1,
      'limits.max_line_bytes: must not exceed',
    ],
  ])('reports %s with its line', (_, yaml, line, expected) => {
    const path = file(`${yaml}\n${GATEWAY_YAML}`);
    const problems = problemsOf({ file: path });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`${path}:${line}: ${expected}`);
  });

  it('reports the problems of all sources together', () => {
    const path = file('api: { port: x }\nconcurency: {}\n');
    const env = { NIGHTSHIFT__CONCURRENCY__GLOBAL: '0' };
    const problems = problemsOf({
      file: path,
      env,
      overrides: { ...GATEWAY, log: { level: 'loud' } },
    });
    expect(problems).toHaveLength(4);
    expect(problems.join('\n')).toContain(
      'environment NIGHTSHIFT__CONCURRENCY__GLOBAL: concurrency.global',
    );
    expect(problems.join('\n')).toContain('command line: log.level');
    expect(problems.join('\n')).toContain(
      `${path}:2: concurency: unknown key, did you mean concurrency?`,
    );
  });

  it.each([
    { temporal: { api_key: 12_345 } },
    { postgres: 'postgres://me:12345@db/x' },
    { api: { host: ['http://me:12345@h'] } },
  ])('never repeats a secret in a problem: %j', (settings) => {
    const problems = problemsOf({ overrides: { ...GATEWAY, ...settings } });
    expect(problems).toHaveLength(1);
    expect(problems[0]).not.toContain('12345');
  });

  it('reports where YAML is malformed, and that a file is missing', () => {
    expect(problemsOf({ file: file('api: {\n  port: 1\n') })[0]).toMatch(/nightshift\.yaml:\d+: /);
    expect(problemsOf({ file: file('a: 1\na: 2\n') })[0]).toContain('nightshift.yaml:2: ');
    expect(problemsOf({ file: '/nowhere/x.yaml' })).toEqual([
      expect.stringContaining('/nowhere/x.yaml: cannot be read'),
    ]);
  });
});

describe('the configured gateways', () => {
  const entry = {
    url: 'http://a',
    request_timeout: '1m',
    max_retries: 1,
    initial_backoff: '1s',
    max_backoff: '2s',
  };

  it('must be configured in one of the two modes', () => {
    expect(problemsOf({})).toEqual([expect.stringContaining('global_inference_gateway: required')]);
    expect(problemsOf({ needs: [] })).toEqual([]);
    expect(problemsOf({ env: { NIGHTSHIFT__WORKER__ROLES: '[batch]' } })).toEqual([]);
    expect(problemsOf({ env: { NIGHTSHIFT__WORKER__ROLES: '[exec]' } })).toHaveLength(1);
  });

  it('must not be configured in both modes', () => {
    const overrides = { ...GATEWAY, model_gateways: { m: entry } };
    expect(problemsOf({ overrides })).toEqual([expect.stringContaining('set only one of')]);
  });

  it('inherit nothing: an entry of model_gateways must name every setting', () => {
    const problems = problemsOf({ overrides: { model_gateways: { m: { url: 'http://a' } } } });
    expect(
      problems.map((problem) => /model_gateways\.m\.(\w+): required/.exec(problem)?.[1]),
    ).toEqual(['request_timeout', 'max_retries', 'initial_backoff', 'max_backoff']);
  });

  it.each([
    [{ initial_backoff: '3s' }, 'initial_backoff: must not be longer than max_backoff'],
    [{ api_key_name: 'a', api_key_file: 'b' }, 'api_key_file: set only one'],
    [{ tls_client_cert_file: 'a' }, 'needs both'],
    [{ request_timeout: '0' }, 'request_timeout: must be longer than 0'],
    [{ url: 'ftp://a' }, 'url: expected an http:// or https:// URL'],
    [
      { url: 'http://me:pw@a' },
      'url: user and password in the URL are not sent: remove them and set api_key_name',
    ],
  ])('are refused with %j', (change, expected) => {
    const problems = problemsOf({ overrides: { model_gateways: { m: { ...entry, ...change } } } });
    expect(problems).toEqual([expect.stringContaining(expected)]);
  });
});

describe('configuration that is passed on', () => {
  it('reads a printed configuration back with the same meaning', () => {
    const config = loadConfig({
      env: {},
      overrides: { ...GATEWAY, worker: { drain_budget: '90s' } },
    });
    expect(loadConfig({ env: {}, file: file(printConfig(config)) })).toEqual(config);
  });

  it('redacts every password and key', () => {
    const overrides = {
      ...GATEWAY,
      postgres: { url: 'postgres://me:hunter2@db/x?password=hunter2' },
      temporal: { api_key: 'hunter2' },
      tracing: { otlp_endpoint: 'http://me:hunter2@otlp:4317' },
    };
    const text = JSON.stringify(redactConfig(loadConfig({ env: {}, overrides })));
    expect(text).not.toContain('hunter2');
    expect(text).toContain('postgres://me:***@db/x');
  });

  it('shows a URL without a password as it was written', () => {
    expect(redactUrl('http://otlp:4317')).toBe('http://otlp:4317');
  });

  it('keeps merged settings as they were written', () => {
    const path = file('worker: { drain_budget: 5m }\n');
    const settings = mergeSettings({ file: path, env: {}, overrides: { api: { port: 1 } } });
    expect(settings).toEqual({ worker: { drain_budget: '5m' }, api: { port: 1 } });
  });

  it('finds settings of every source, except empty ones', () => {
    const env = { DATABASE_URL: 'postgres://a/b', NIGHTSHIFT__TEMPORAL__ADDRESS: '' };
    const paths = ['postgres.url', 'temporal.address', 'model_gateways'];
    expect(findSettings({ env }, paths)).toEqual(new Set(['postgres.url']));
  });

  it('gives a child with a config file none of the variables that would override it', () => {
    const env = {
      PATH: '/bin',
      NIGHTSHIFT__API__PORT: '1',
      PGHOST: 'a',
      TEMPORAL_ADDRESS: 'b',
      AWS_REGION: 'c',
    };
    expect(withoutSettings(env)).toEqual({ PATH: '/bin', AWS_REGION: 'c' });
  });
});
