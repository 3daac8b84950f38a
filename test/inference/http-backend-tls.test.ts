import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { createHttpBackend } from '../../inference/http-backend';
import { readGatewaySecrets } from '../../inference/secrets';
import type { GatewayConfig } from '../../platform/config-schema';
import { gatewayOf, requestOf, startLocalServer, type LocalServer } from './local-server';
import { sendTo } from '../support/promises-of-sending';

const file = (name: string) => join(__dirname, 'certificates', name);
const pem = (name: string) => readFileSync(file(name));
const never = new AbortController().signal;

let server: LocalServer;
let mutual: LocalServer;

beforeAll(async () => {
  const identity = { cert: pem('server.pem'), key: pem('server-key.pem') };
  server = await startLocalServer((_, response) => response.end('{}'), identity);
  mutual = await startLocalServer(
    (_, response, socket) => response.end((socket as TLSSocket).getPeerCertificate().subject.CN),
    { ...identity, ca: pem('ca.pem'), requestCert: true, rejectUnauthorized: true },
  );
});
afterAll(async () => {
  await server.close();
  await mutual.close();
});

async function send(url: string, settings: Partial<GatewayConfig>) {
  const gateway = gatewayOf(url, settings);
  const backend = createHttpBackend(gateway, {
    secrets: readGatewaySecrets(gateway, '/'),
    connections: 2,
    maxAnswerBytes: 1_000,
  });
  const outcome = await sendTo(backend, requestOf(), never);
  await backend.close();
  return outcome;
}

describe('TLS to a gateway', () => {
  it('refuses a certificate that no known authority signed', async () => {
    expect(await send(server.url, {})).toMatchObject({ kind: 'failure', reason: 'connect' });
    expect(server.received).toHaveLength(0);
  });

  it('trusts the configured authority, for address and name', async () => {
    const settings = { tls_ca_cert_file: file('ca.pem') };
    expect(await send(server.url, settings)).toMatchObject({ status: 200 });
    const byName = `https://localhost:${server.port}`;
    expect(await send(byName, settings)).toMatchObject({ status: 200 });
  });

  it('can be configured not to verify', async () => {
    const outcome = await send(server.url, { tls_insecure_skip_verify: true });
    expect(outcome).toMatchObject({ status: 200 });
  });

  it('presents the client certificate if one is configured', async () => {
    const trust = { tls_ca_cert_file: file('ca.pem') };
    const client = {
      tls_client_cert_file: file('client.pem'),
      tls_client_key_file: file('client-key.pem'),
    };
    expect(await send(mutual.url, { ...trust, ...client })).toMatchObject({
      status: 200,
      body: Buffer.from('test client'),
    });
    expect((await send(mutual.url, trust)).kind).toBe('failure');
    expect(mutual.received).toHaveLength(1);
  });
});
