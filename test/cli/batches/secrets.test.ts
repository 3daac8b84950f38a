import { createBatchService } from '../../../cli/batches/batch-service';
import { connectionOf } from '../../../cli/batches/connection-flags';
import { runClient } from './client-run';
import { openaiError, startFakeServer, type FakeServer } from './fake-server';

const ENV = {
  OPENAI_API_KEY: 'sk-secret',
  OPENAI_ADMIN_KEY: 'sk-admin-secret',
  OPENAI_ORG_ID: 'org-secret',
  OPENAI_PROJECT_ID: 'proj-secret',
  OPENAI_CUSTOM_HEADERS: 'X-Proxy-Token: secret\nAuthorization: Bearer secret',
};
const saved = { ...process.env };
let server: FakeServer;

beforeEach(async () => {
  server = await startFakeServer();
  Object.assign(process.env, ENV);
});
afterEach(async () => {
  for (const name of Object.keys(ENV)) delete process.env[name];
  Object.assign(process.env, saved);
  await server.close();
});

async function headersOfList(baseUrl: string | undefined): Promise<string> {
  const flags = baseUrl === undefined ? {} : { baseUrl };
  const connection = { ...connectionOf(flags, ENV), baseUrl: server.url };
  await createBatchService(connection).list(1, new AbortController().signal);
  return JSON.stringify(server.seen.at(-1)?.headers);
}

it('no secret from the environment is sent to the default address', async () => {
  expect(await headersOfList(undefined)).not.toContain('secret');
});

it('a server that the user named gets the API key, and never the admin key', async () => {
  const headers = await headersOfList(server.url);
  expect(headers).toContain('secret');
  expect(headers).not.toContain('sk-admin-secret');
});

it.each([
  ['--api-key', ['--api-key', 'sk-secret']],
  ['--header Authorization', ['--header', 'Authorization: Bearer sk-secret']],
])('%s requires a base URL', async (flag, args) => {
  const client = runClient(['list', ...args]);
  expect(await client.done).not.toBe(0);
  expect(client.err()).toContain(`${flag} is not sent to the default address`);
  expect(client.err()).not.toContain('sk-secret');
});

it('a 401 from the default address explains how to send a key', async () => {
  server.react = () => openaiError(401, 'no key');
  const connection = { ...connectionOf({}, ENV), baseUrl: server.url };
  const listing = createBatchService(connection).list(1, new AbortController().signal);
  await expect(listing).rejects.toThrow(`set OPENAI_API_KEY and --base-url ${server.url}`);
});
