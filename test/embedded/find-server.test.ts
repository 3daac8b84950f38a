import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { downloadServer } from '../../embedded/temporal/download';
import { cachedBinary, findServer } from '../../embedded/temporal/find-server';

const DESCRIPTION = 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)';
let folder: string;
let server: Server | undefined;
let said: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-find-'));
  said = [];
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  server?.closeAllConnections();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)));
  server = undefined;
});

function script(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}
const temporalScript = (description: string): string => `echo '${description}'`;

function environment(...paths: string[]) {
  return { PATH: [...paths, '/usr/bin', '/bin'].join(delimiter), HOME: folder };
}

async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const find = (options: Partial<Parameters<typeof findServer>[0]> = {}) =>
  findServer({ env: environment(), say: (line) => said.push(line), slowWays: [], ...options });

/** A tar archive of plain files, as `tar` writes it. */
function tar(files: Readonly<Record<string, string>>): Buffer {
  const blocks = Object.entries(files).flatMap(([name, text]) => {
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write(text.length.toString(8).padStart(11, '0'), 124);
    header.write('0', 156);
    return [header, Buffer.from(text), Buffer.alloc((512 - (text.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

function archiveService(archive: Buffer, asked: string[] = []): RequestListener {
  return (request, response) => {
    asked.push(request.url ?? '');
    if (request.url?.startsWith('/cli/') === true) {
      const archiveUrl = `http://${request.headers.host}/moved`;
      response.end(JSON.stringify({ archiveUrl, fileToExtract: 'temporal' }));
    } else if (request.url === '/moved') {
      response.writeHead(302, { location: '/archive' }).end();
    } else {
      response.end(archive);
    }
  };
}

describe('the look-up of the Temporal server', () => {
  test('takes the one on the PATH before the cached one', async () => {
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(DESCRIPTION));
    script(cachedBinary({ HOME: folder }), temporalScript(DESCRIPTION));
    const found = await find({ env: environment(dirname(onPath)) });
    expect(found).toEqual({
      path: onPath,
      serverVersion: '1.29.1',
      description: DESCRIPTION,
      source: 'PATH',
    });
  });

  test('takes the cached one where the PATH has none', async () => {
    const cached = script(cachedBinary({ HOME: folder }), temporalScript(DESCRIPTION));
    expect(cached).toBe(join(folder, '.cache', 'nightshift', 'temporal', '1.5.1', 'temporal'));
    expect(await find()).toMatchObject({ path: cached, source: 'cache' });
  });

  test('honours XDG_CACHE_HOME', () => {
    expect(cachedBinary({ HOME: '/home/me', XDG_CACHE_HOME: '/caches' })).toBe(
      '/caches/nightshift/temporal/1.5.1/temporal',
    );
  });

  test.each([
    ['too old', 'temporal version 1.0.0 (Server 1.24.2, UI 2.1.0)'],
    ['another program', 'temporal: a tool for time series'],
  ])('passes over one that is %s', async (_, description) => {
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(description));
    const cached = script(cachedBinary({ HOME: folder }), temporalScript(DESCRIPTION));
    expect(await find({ env: environment(dirname(onPath)) })).toMatchObject({ path: cached });
  });

  test('prefers the version that made the data directory', async () => {
    const newer = 'temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)';
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(newer));
    const cached = script(cachedBinary({ HOME: folder }), temporalScript(DESCRIPTION));
    const env = environment(dirname(onPath));
    expect(await find({ env })).toMatchObject({ path: onPath });
    expect(await find({ env, wantedVersion: '1.29.1' })).toMatchObject({ path: cached });
  });

  test('refuses with words when only another version than the data directory needs is there', async () => {
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(DESCRIPTION));
    const env = environment(dirname(onPath));
    await expect(find({ env, wantedVersion: '1.31.2' })).rejects.toMatchObject({
      code: 'temporal_unavailable',
      message: expect.stringMatching(
        /made by Temporal server 1\.31\.2[^]*is server 1\.29\.1, not 1\.31\.2[^]*new --data-dir/,
      ),
    });
  });

  test('downloads where none is there, and keeps it in the cache', async () => {
    const asked: string[] = [];
    const archive = tar({
      LICENSE: 'x'.repeat(700),
      temporal: `#!/bin/sh\n${temporalScript(DESCRIPTION)}\n`,
    });
    const downloadService = await serve(archiveService(archive, asked));
    const found = await find({ slowWays: ['download'], downloadService });
    expect(found).toMatchObject({ path: cachedBinary({ HOME: folder }), source: 'download' });
    expect(asked[0]).toMatch(/^\/cli\/v1\.5\.1\?arch=\w+&platform=\w+&format=tar\.gz$/);
    expect(said[0]).toContain('trying download');
    expect(await find()).toMatchObject({ source: 'cache' });
  });

  test('builds with Go where the download fails, and says that it does', async () => {
    const downloadService = await serve((_, response) => response.writeHead(403).end());
    const go = script(
      join(folder, 'gobin', 'go'),
      `if [ "$1" = version ]; then echo 'go version go1.26.8 linux/amd64'; exit 0; fi
[ "$1 $2 $CGO_ENABLED" = 'install github.com/temporalio/cli/cmd/temporal@v1.5.1 0' ] || exit 9
printf '#!/bin/sh\\n%s\\n' "echo '${DESCRIPTION}'" > "$GOBIN/temporal" && chmod +x "$GOBIN/temporal"`,
    );
    const env = environment(dirname(go));
    const found = await find({ env, slowWays: ['download', 'go install'], downloadService });
    expect(found).toMatchObject({ path: cachedBinary({ HOME: folder }), source: 'go install' });
    expect(said.join('\n')).toMatch(/download failed: .* answered 403[^]*4 to 9 minutes/);
  });

  test('says everything that was tried and what to do when nothing works', async () => {
    const downloadService = await serve((_, response) => response.writeHead(403).end());
    const go = script(join(folder, 'gobin', 'go'), `echo 'go version go1.19.8 linux/amd64'`);
    const env = environment(dirname(go));
    await expect(
      find({ env, slowWays: ['download', 'go install'], downloadService }),
    ).rejects.toMatchObject({
      code: 'temporal_unavailable',
      message: expect.stringMatching(
        /download: .*403[^]*go install: Go 1\.19 is too old: 1\.21 is needed[^]*What to do: install the Temporal CLI[^]*TEMPORAL_ADDRESS/,
      ),
    });
  });

  test('tells what a failed build said', async () => {
    const go = script(
      join(folder, 'gobin', 'go'),
      `[ "$1" = version ] && echo go1.26 && exit 0; echo 'no space left on device' >&2; exit 1`,
    );
    await expect(
      find({ env: environment(dirname(go)), slowWays: ['go install'] }),
    ).rejects.toMatchObject({ message: expect.stringContaining('no space left on device') });
  });
});

describe('the download', () => {
  const target = () => join(folder, 'temporal');
  const download = (service: string) =>
    downloadServer({ version: 'v1.5.1', service, target: target(), stallTimeoutMs: 200 });

  test('gives up when no byte comes', async () => {
    const service = await serve(() => undefined);
    await expect(download(service)).rejects.toMatchObject({
      message: expect.stringMatching(/no (byte|answer) (for|within) 0\.2 s/),
    });
  });

  test('gives up when the archive stops in the middle, and leaves nothing behind', async () => {
    const archive = tar({ temporal: 'y'.repeat(100_000) });
    const service = await serve((request, response) => {
      if (request.url === '/archive') response.write(archive.subarray(0, 100));
      else archiveService(archive)(request, response);
    });
    await expect(download(service)).rejects.toMatchObject({
      message: expect.stringContaining('no byte for 0.2 s'),
    });
    expect(existsSync(target())).toBe(false);
  });

  test('refuses an archive that ends too early', async () => {
    const whole = tar({ temporal: 'y'.repeat(100_000) });
    const service = await serve(archiveService(whole.subarray(0, whole.length - 40)));
    await expect(download(service)).rejects.toThrow();
    expect(existsSync(target())).toBe(false);
  });

  test('refuses an archive without the program', async () => {
    const service = await serve(archiveService(tar({ other: 'x' })));
    await expect(download(service)).rejects.toMatchObject({ code: 'object_missing' });
  });

  test('refuses a service that names no archive', async () => {
    const service = await serve((_, response) => response.end('<html>'));
    await expect(download(service)).rejects.toMatchObject({
      message: expect.stringContaining('did not name an archive'),
    });
  });
});
