import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openConnection, type TemporalConnection } from '../../client/reloading-connection';
import type { TemporalConfig } from '../../client/temporal-credentials';
import { configSchema } from '../../platform/config-schema';
import { until } from '../support/until';
import { pem, startGrpcServer, type GrpcServer } from './grpc-server';

const LOOK_MS = 20;
let server: GrpcServer;
let folder: string;
let connection: TemporalConnection | null = null;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-tls-'));
  server = await startGrpcServer();
});
afterEach(async () => {
  await connection?.close();
  connection = null;
  await server.close();
  rmSync(folder, { recursive: true });
});

const inFolder = (name: string): string => join(folder, name);

/** Replaces a file atomically, as a mounted secret is replaced. */
function put(name: string, from: string): void {
  copyFileSync(from, inFolder('draft'));
  renameSync(inFolder('draft'), inFolder(name));
}

function putClient(name: 'first' | 'second'): void {
  put('client.pem', pem(name));
  put('client-key.pem', pem(`${name}-key`));
}

function settings(more: Record<string, unknown> = {}): TemporalConfig {
  const tls = {
    ca_cert_file: pem('ca'),
    client_cert_file: inFolder('client.pem'),
    client_key_file: inFolder('client-key.pem'),
    server_name: 'temporal.test',
  };
  return configSchema.parse({ temporal: { address: server.address, tls, ...more } }).temporal;
}

function open(
  config: TemporalConfig,
  warnings: string[] = [],
  counted: string[] = [],
): TemporalConnection {
  const logger = {
    info: () => undefined,
    warn: (_: unknown, text: string) => void warnings.push(text),
  };
  const observer = {
    reloaded: (credential: string, result: string) => void counted.push(`${credential} ${result}`),
  };
  connection = openConnection(config, { everyMs: LOOK_MS, logger, observer });
  return connection;
}

const call = (on: TemporalConnection) => on.workflowService.getSystemInfo({});

describe('a connection to Temporal with certificates in files', () => {
  it('presents the client certificate and checks the server name from the settings', async () => {
    putClient('first');
    await call(open(settings()));
    expect(server.calls).toMatchObject([{ client: 'first client', serverName: 'temporal.test' }]);
  });

  it('rejects a server whose certificate has another name', async () => {
    putClient('first');
    const tls = {
      ca_cert_file: pem('ca'),
      client_cert_file: inFolder('client.pem'),
      client_key_file: inFolder('client-key.pem'),
    };
    const unnamed = open(settings({ tls }));
    await expect(unnamed.withDeadline(Date.now() + 1_000, () => call(unnamed))).rejects.toThrow();
    expect(server.calls).toEqual([]);
  });

  it('uses changed certificates for new calls and lets calls in flight finish', async () => {
    putClient('first');
    const opened = open(settings());
    const release = server.hold();
    const underWay = call(opened);
    await until(() => server.calls.length === 1, 5_000, 'the first call', 10);
    const before = opened.workflowService;
    putClient('second');
    await until(() => opened.workflowService !== before, 5_000, 'a new connection', 10);
    release();
    await expect(underWay).resolves.toBeDefined();
    await call(opened);
    expect(server.calls.map(({ client }) => client)).toEqual(['first client', 'second client']);
  });

  it('keeps the old credentials while certificate and key do not match', async () => {
    putClient('first');
    const warnings: string[] = [];
    const counted: string[] = [];
    const opened = open(settings(), warnings, counted);
    const before = opened.workflowService;
    put('client.pem', pem('second'));
    await until(() => warnings.length > 0, 5_000, 'a warning', 10);
    await until(() => counted.length > 1, 5_000, 'a second check that fails', 10);
    expect(opened.workflowService).toBe(before);
    put('client-key.pem', pem('second-key'));
    await until(() => opened.workflowService !== before, 5_000, 'a new connection', 10);
    expect(warnings).toHaveLength(1);
    // Every check is counted, so that a fault that lasts keeps the counter moving.
    expect(new Set(counted.slice(0, -1))).toEqual(new Set(['temporal_certificates failure']));
    expect(counted.at(-1)).toBe('temporal_certificates success');
  });

  it('sends the API key that the file contains now', async () => {
    putClient('first');
    writeFileSync(inFolder('key'), 'one\n');
    const counted: string[] = [];
    const opened = open(settings({ api_key_file: inFolder('key') }), [], counted);
    await call(opened);
    rmSync(inFolder('key'));
    await until(() => counted.length > 0, 5_000, 'a check that fails', 10);
    writeFileSync(inFolder('next'), 'two\n');
    renameSync(inFolder('next'), inFolder('key'));
    await until(
      async () => {
        await call(opened);
        return server.calls.at(-1)?.authorization === 'Bearer two';
      },
      5_000,
      'the new key',
      10,
    );
    expect(server.calls[0]?.authorization).toBe('Bearer one');
    expect(counted[0]).toBe('temporal_api_key failure');
    expect(counted.at(-1)).toBe('temporal_api_key success');
  });

  it('says which file is missing or is not a certificate', () => {
    expect(() => open(settings())).toThrow(
      /temporal\.tls\.client_cert_file: .*client\.pem cannot be read \(ENOENT\)/,
    );
    put('client.pem', __filename);
    put('client-key.pem', __filename);
    expect(() => open(settings())).toThrow(/temporal\.tls: the certificates cannot be used/);
  });
});
