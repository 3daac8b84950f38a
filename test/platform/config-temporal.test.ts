import { readCredentials } from '../../client/temporal-credentials';
import { isNightshiftError } from '../../core/errors';
import { loadConfig, type Config } from '../../platform/config';
import { printConfig } from '../../platform/config-print';
import { redactUrl } from '../../platform/config-redact';
import { pem } from '../client/grpc-server';

const GATEWAY = { global_inference_gateway: { url: 'http://127.0.0.1:8001' } };

function load(temporal: Record<string, unknown>, env: Record<string, string> = {}): Config {
  return loadConfig({ env, overrides: { ...GATEWAY, temporal } });
}

function problem(temporal: Record<string, unknown>, env: Record<string, string> = {}): string {
  try {
    load(temporal, env);
  } catch (error) {
    if (isNightshiftError(error, 'config_invalid')) return error.message;
    throw error;
  }
  return '';
}

describe('the API key of Temporal', () => {
  it.each([[{ api_key: 'k' }], [{ api_key_file: '/k' }]])(
    'is never sent in clear text (%j)',
    (key) => {
      expect(problem({ ...key, tls: false })).toContain(
        'temporal.tls: the API key would be sent in clear text',
      );
      expect(problem(key, { TEMPORAL_TLS: 'false' })).toContain('environment TEMPORAL_TLS');
    },
  );

  it('turns TLS on', () => {
    expect(readCredentials(load({ api_key: 'k' }).temporal)).toEqual({ apiKey: 'k', tls: {} });
    expect(readCredentials(load({}).temporal)).toEqual({ apiKey: null, tls: null });
  });

  it('may be set in only one place', () => {
    expect(problem({ api_key: 'k', api_key_file: '/k' })).toContain('set only one of');
  });
});

describe('the TLS settings of Temporal', () => {
  it("are read from the variables of Temporal's own tools", () => {
    const env = {
      TEMPORAL_TLS: 'true',
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/ca',
      TEMPORAL_TLS_CLIENT_CERT_PATH: '/cert',
      TEMPORAL_TLS_CLIENT_KEY_DATA: 'pem',
      TEMPORAL_TLS_SERVER_NAME: 'name',
      TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: 'false',
    };
    expect(load({}, env).temporal.tls).toEqual({
      ca_cert_file: '/ca',
      client_cert_file: '/cert',
      client_key_data: 'pem',
      server_name: 'name',
      disable_host_verification: false,
    });
  });

  it('need only one variable, and TEMPORAL_TLS=true keeps the other settings', () => {
    expect(load({}, { TEMPORAL_TLS_SERVER_NAME: 'a' }).temporal.tls).toMatchObject({
      server_name: 'a',
    });
    const tls = { server_name: 'a' };
    expect(load({ tls }, { TEMPORAL_TLS: 'true' }).temporal.tls).toMatchObject(tls);
    expect(readCredentials(load({}, { TEMPORAL_TLS: 'true' }).temporal).tls).toEqual({});
  });

  it('are overridden by our own variables, in any order', () => {
    const env = {
      NIGHTSHIFT__TEMPORAL__TLS__SERVER_NAME: 'ours',
      NIGHTSHIFT__TEMPORAL__TLS: 'true',
      TEMPORAL_TLS_SERVER_NAME: 'theirs',
    };
    expect(load({}, env).temporal.tls).toMatchObject({ server_name: 'ours' });
  });

  it.each([
    [{ client_cert_file: '/c' }, 'a client certificate needs both'],
    [{ client_key_data: 'k' }, 'a client certificate needs both'],
    [{ ca_cert_file: '/c', ca_cert_data: 'c' }, 'set only one of ca_cert_file and ca_cert_data'],
    [{ disable_host_verification: true }, 'workers always verify the server'],
  ])('are refused if they are %j', (tls, message) => {
    expect(problem({ tls })).toContain(message);
  });

  it('are refused if TEMPORAL_TLS is neither true nor false', () => {
    expect(problem({}, { TEMPORAL_TLS: 'yes' })).toContain(
      'environment TEMPORAL_TLS: temporal.tls',
    );
  });
});

describe('a printed configuration', () => {
  it('shows no secret of any setting', () => {
    const secret = 'hunter2';
    const config = loadConfig({
      env: {},
      overrides: {
        postgres: {
          url: `postgres://me:${secret}@db/x?sslmode=require&sslpassword=${secret}&passfile=${secret}`,
        },
        temporal: { tls: { client_cert_file: pem('first'), client_key_data: secret } },
        tracing: { otlp_endpoint: `https://${secret}@otlp:4317/?token=${secret}` },
        global_inference_gateway: {
          url: `https://m/openai?api-version=2024-10-21&api-key=${secret}#${secret}`,
        },
        object_store: { type: 's3', bucket: 'b', endpoint: `https://s3/#${secret}` },
      },
    });
    const text = printConfig(config);
    expect(text).not.toContain(secret);
    expect(text).toContain('sslmode=require');
    expect(text).toContain('api-version=2024-10-21');
  });

  it('hides the keys of every gateway', () => {
    const entry = {
      request_timeout: '1m',
      max_retries: 1,
      initial_backoff: '1s',
      max_backoff: '1s',
    };
    const overrides = { model_gateways: { m: { ...entry, url: 'https://m/?key=hunter2' } } };
    expect(printConfig(loadConfig({ env: {}, overrides }))).not.toContain('hunter2');
  });

  it('shows a URL without secrets as it was written', () => {
    const url = 'postgres://db/x?sslmode=require';
    expect(redactUrl(url)).toBe(url);
  });
});

it('never shows a secret in a message about a wrong setting', () => {
  const wrong = [
    { postgres: 'postgres://db/x?sslpassword=hunter2' },
    { tracing: { otlp_endpoint: ['https://otlp?token=hunter2'] } },
    { temporal: { tls: { client_key_data: ['hunter2'] } } },
  ];
  for (const overrides of wrong) {
    expect(() => loadConfig({ env: {}, overrides: { ...GATEWAY, ...overrides } })).toThrow(
      /^(?!.*hunter2)/s,
    );
  }
});
