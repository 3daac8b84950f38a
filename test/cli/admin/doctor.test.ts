import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findDoctorConfig } from '../../../cli/admin/doctor-config';
import { doctorChecks } from '../../../cli/admin/doctor-checks';
import { lockFile } from '../../../embedded/locks/lock-file';
import { urlHost } from '../../../embedded/url-host';
import { loadConfig } from '../../../platform/config';

let dataDir: string;
beforeEach(() => (dataDir = mkdtempSync(join(tmpdir(), 'nightshift-doctor-'))));
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(dataDir, { recursive: true });
});

function putSettings(): void {
  mkdirSync(join(dataDir, 'run'));
  const settings = {
    postgres: { url: 'postgres://u:p@127.0.0.1:1/n' },
    global_inference_gateway: { url: 'http://127.0.0.1:2' },
  };
  writeFileSync(join(dataDir, 'run', 'config.json'), JSON.stringify(settings));
}

it('the doctor checks the stack that runs in the data directory', () => {
  putSettings();
  const lock = lockFile(join(dataDir, 'lock'));
  const { config, result } = findDoctorConfig({ dataDir });
  expect(result).toEqual({ isOk: true, text: `from the stack in ${dataDir}, pid ${process.pid}` });
  expect(config?.postgres.url).toBe('postgres://u:p@127.0.0.1:1/n');
  if (lock.kind === 'held') lock.release();
});

it('the doctor reports that no stack is running in a data directory, or that none has ever run', () => {
  expect(findDoctorConfig({ dataDir }).result.text).toContain(`no stack has run in ${dataDir}`);
  putSettings();
  expect(findDoctorConfig({ dataDir }).result.text).toContain(`no stack is running in ${dataDir}`);
});

it.each([
  ['::1', '[::1]'],
  ['::', '[::1]'],
  ['0.0.0.0', '127.0.0.1'],
  ['localhost', 'localhost'],
])('a server that listens on %s is reached at %s', (host, asked) =>
  expect(urlHost(host)).toBe(asked),
);

describe('the doctor with a database in the environment and a stack in the default directory', () => {
  const startedIn = process.cwd();
  const before = process.env['DATABASE_URL'];
  beforeEach(() => {
    const folder = dataDir;
    dataDir = join(folder, '.nightshift');
    mkdirSync(dataDir);
    putSettings();
    dataDir = folder;
    process.chdir(folder);
  });
  afterEach(() => {
    process.chdir(startedIn);
    if (before === undefined) delete process.env['DATABASE_URL'];
    else process.env['DATABASE_URL'] = before;
  });

  it.each([
    [
      "the stack if the database is the stack's own",
      'postgres://u:p@127.0.0.1:1/n',
      'from the stack in .nightshift',
    ],
    [
      'the environment if it is another database',
      'postgres://u:p@127.0.0.1:1/other',
      'global_inference_gateway: required',
    ],
  ])('checks %s', (_which, url, text) => {
    const lock = lockFile(join('.nightshift', 'lock'));
    process.env['DATABASE_URL'] = url;
    expect(findDoctorConfig({}).result.text).toContain(text);
    if (lock.kind === 'held') lock.release();
  });
});

it('knows a gateway by its document, because its port has no health page', async () => {
  const server = createServer(({ url }, response) =>
    response.end(url === '/openapi.json' ? '{"info":{"title":"Nightshift gateway"}}' : '{}'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const pools = { main: { models: ['*'], backends: [{ url: 'http://127.0.0.1:9' }] } };
  const config = loadConfig({ env: {}, overrides: { gateway: { port, pools } }, needs: [] });
  const check = doctorChecks(config).find(({ name }) => name === 'gateway.port');
  expect(await check?.run()).toBe(`${port} is used by a running nightshift`);
  server.close();
});

describe('the doctor and the observability ports', () => {
  let server: Server;
  beforeEach(async () => {
    server = createServer((_, response) => response.end('{"status":"ok"}'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => server.close());

  it.each(['api', 'worker'] as const)(
    'checks the port of the %s at its own address',
    async (process) => {
      const { port } = server.address() as AddressInfo;
      const overrides = {
        // Nothing listens on this one.
        api: { host: '127.0.0.2' },
        [process]: {
          ...(process === 'api' ? { host: '127.0.0.2' } : {}),
          ...{ observability_host: '127.0.0.1', observability_port: port },
        },
      };
      const config = loadConfig({ env: {}, overrides, needs: [] });
      const check = doctorChecks(config).find(
        ({ name }) => name === `${process}.observability_port`,
      );
      expect(await check?.run()).toBe(`${port} is used by a running nightshift`);
    },
  );
});
