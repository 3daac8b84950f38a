import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runGateway } from '../../gateway/main';
import { loadConfig } from '../../platform/config';
import { startLocalServer, type LocalServer } from '../inference/local-server';
import { freePort } from '../support/free-port';

let folder: string;
let taken: LocalServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-gateway-'));
  taken = await startLocalServer((_request, response) => void response.end());
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await taken.close();
});

const backends = [{ url: 'http://127.0.0.1:9' }];

/** Starts a gateway that must fail. */
function start(gateway: Record<string, unknown>): Promise<unknown> {
  const pools = { main: { models: ['*'], backends } };
  const overrides = {
    log: { level: 'error' },
    gateway: { port: 0, observability_port: 0, pools, ...gateway },
  };
  return runGateway(loadConfig({ env: {}, needs: ['pools'], overrides }));
}

it.each(['port', 'observability_port'])('names the setting of a %s that is taken', async (key) => {
  const { port } = taken;
  await expect(start({ [key]: port })).rejects.toThrow(
    new RegExp(`port ${port} is already in use.*gateway\\.${key}`, 's'),
  );
});

it('gives its ports back when it cannot start', async () => {
  const observability_port = await freePort();
  await expect(start({ observability_port, port: taken.port })).rejects.toThrow('already in use');
  const server = await startLocalServer(
    (_request, response) => void response.end(),
    undefined,
    observability_port,
  );
  await server.close();
});

it.each([
  ['cannot be read', null, /gateway\.worker_token_file: cannot read .*missing \(ENOENT\)/],
  ['is too short', 'short', /must contain one token of at least 16 printable ASCII characters/],
  ['has two tokens', 'a-token-of-workers\nanother-token', /must contain one token/],
])('refuses a token file that %s, and shows no token', async (_what, text, message) => {
  const file = join(folder, text === null ? 'missing' : 'token');
  if (text !== null) writeFileSync(file, text);
  const failure = await start({ worker_token_file: file }).catch((error: Error) => error.message);
  expect(failure).toMatch(message);
  if (text !== null) expect(failure).not.toContain(text.split('\n', 1)[0]);
});

it('names the backend setting whose key cannot be read', async () => {
  const pools = {
    main: { models: ['*'], backends: [{ ...backends[0], api_key_file: join(folder, 'no-key') }] },
  };
  await expect(start({ pools })).rejects.toThrow(/api_key_file.*no-key/s);
});
