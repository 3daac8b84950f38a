import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { doctorChecks } from '../../../cli/admin/doctor-checks';
import { loadConfig } from '../../../platform/config';
import { closeHosts, openSimulatedHost } from '../../providers/simulated-host';

let server: Server;
let folder: string;
const calls: string[] = [];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-doctor-'));
  writeFileSync(join(folder, 'key'), 'good-key');
  calls.length = 0;
  server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    const isValid = request.headers.authorization === 'Bearer good-key';
    response.statusCode = isValid ? 200 : 401;
    response.setHeader('content-type', 'application/json');
    const error = { error: { message: 'bad key', type: 'x', code: 'invalid_api_key' } };
    response.end(JSON.stringify(isValid ? { object: 'list', data: [], has_more: false } : error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

function check() {
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/v1`;
  const openai = { type: 'openai', url, api_key_file: join(folder, 'key') };
  const overrides = { providers: { openai } };
  const config = loadConfig({ env: {}, overrides, needs: [] });
  return doctorChecks(config).find(({ name }) => name === 'provider openai');
}

it('the doctor makes one list call to a provider', async () => {
  expect(await check()?.run()).toMatch(/^http:.* accepts the key$/);
  expect(calls).toEqual(['GET /v1/batches?limit=100']);
});

it('the doctor reports that a provider refuses the key', async () => {
  writeFileSync(join(folder, 'key'), 'bad-key');
  await expect(check()?.run()).rejects.toThrow('auth: bad key');
});

it('the doctor tells a wrong key of a provider without a list', async () => {
  const host = await openSimulatedHost('good-key');
  const one = { type: 'sarvam', url: `${host.url}/providers/sarvam` };
  const overrides = { providers: { one: { ...one, api_key_file: host.keyFile.path } } };
  const config = loadConfig({ env: {}, overrides, needs: [] });
  const sarvam = doctorChecks(config).find(({ name }) => name === 'provider one');
  await host.configure({ keys: ['good-key'] });
  expect(await sarvam?.run()).toMatch(/ accepts the key$/);
  await host.configure({ keys: ['another-key'] });
  await expect(sarvam?.run()).rejects.toThrow('auth: ');
  await closeHosts();
});
