import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { cachedProgram } from '../../../embedded/binaries/program-cache';
import { findServer } from '../../../embedded/temporal/find-server';
import { archiveService, serve, tarArchive, type TestServer } from '../binaries/archive-server';

const DESCRIPTION = 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)';
const cachedCli = (env: Record<string, string>) =>
  cachedProgram({ name: 'temporal', version: 'v1.5.1' }, env);
let folder: string;
let server: TestServer | undefined;
let said: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-find-'));
  said = [];
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await server?.close();
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

async function startService(listener: RequestListener): Promise<string> {
  server = await serve(listener);
  return server.url;
}

const find = (options: Partial<Parameters<typeof findServer>[0]> = {}) =>
  findServer({ env: environment(), say: (line) => said.push(line), slowSources: [], ...options });

describe('finding the Temporal server', () => {
  it('prefers a server on the PATH to a cached one', async () => {
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(DESCRIPTION));
    script(cachedCli({ HOME: folder }), temporalScript(DESCRIPTION));
    const found = await find({ env: environment(dirname(onPath)) });
    expect(found).toEqual({
      path: onPath,
      serverVersion: '1.29.1',
      description: DESCRIPTION,
      source: 'PATH',
    });
  });

  it('takes the cached server if the PATH has none', async () => {
    const cached = script(cachedCli({ HOME: folder }), temporalScript(DESCRIPTION));
    expect(cached).toBe(join(folder, '.cache', 'nightshift', 'temporal', '1.5.1', 'temporal'));
    expect(await find()).toMatchObject({ path: cached, source: 'cache' });
  });

  it('keeps the cache below XDG_CACHE_HOME if that is set', () => {
    expect(cachedCli({ HOME: '/home/me', XDG_CACHE_HOME: '/caches' })).toBe(
      '/caches/nightshift/temporal/1.5.1/temporal',
    );
  });

  it.each([
    ['too old', 'temporal version 1.0.0 (Server 1.24.2, UI 2.1.0)'],
    ['another program', 'temporal: a tool for time series'],
  ])('ignores a program on the PATH that is %s', async (_, description) => {
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(description));
    const cached = script(cachedCli({ HOME: folder }), temporalScript(DESCRIPTION));
    expect(await find({ env: environment(dirname(onPath)) })).toMatchObject({ path: cached });
  });

  it('prefers the server version that made the data directory', async () => {
    const newer = 'temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)';
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(newer));
    const cached = script(cachedCli({ HOME: folder }), temporalScript(DESCRIPTION));
    const env = environment(dirname(onPath));
    expect(await find({ env })).toMatchObject({ path: onPath });
    expect(await find({ env, wantedVersion: '1.29.1' })).toMatchObject({ path: cached });
  });

  it('fails with an explanation if only a version is found that did not make the data directory', async () => {
    const onPath = script(join(folder, 'bin', 'temporal'), temporalScript(DESCRIPTION));
    const env = environment(dirname(onPath));
    await expect(find({ env, wantedVersion: '1.31.2' })).rejects.toMatchObject({
      code: 'temporal_unavailable',
      message: expect.stringMatching(
        /created by Temporal server 1\.31\.2[^]*is server 1\.29\.1, not 1\.31\.2[^]*new --data-dir/,
      ),
    });
  });

  it('downloads a server if none is installed, and keeps it in the cache', async () => {
    const asked: string[] = [];
    const archive = tarArchive([
      { path: 'LICENSE', text: 'x'.repeat(700) },
      { path: 'temporal', text: `#!/bin/sh\n${temporalScript(DESCRIPTION)}\n` },
    ]);
    const downloadService = await startService(archiveService(archive, asked));
    const downloadSha256 = createHash('sha256').update(archive).digest('hex');
    const found = await find({ slowSources: ['download'], downloadService, downloadSha256 });
    expect(found).toMatchObject({
      path: cachedCli({ HOME: folder }),
      source: 'download',
    });
    expect(asked[0]).toMatch(/^\/cli\/v1\.5\.1\?arch=\w+&platform=\w+&format=tar\.gz$/);
    expect(said[0]).toContain('trying download');
    expect(await find()).toMatchObject({ source: 'cache' });
  });

  it('builds a server with Go if the download fails, and announces how long that takes', async () => {
    const downloadService = await startService((_, response) => response.writeHead(403).end());
    const go = script(
      join(folder, 'gobin', 'go'),
      `if [ "$1" = version ]; then echo 'go version go1.26.8 linux/amd64'; exit 0; fi
[ "$1 $2 $CGO_ENABLED" = 'install github.com/temporalio/cli/cmd/temporal@v1.5.1 0' ] || exit 9
printf '#!/bin/sh\\n%s\\n' "echo '${DESCRIPTION}'" > "$GOBIN/temporal" && chmod +x "$GOBIN/temporal"`,
    );
    const env = environment(dirname(go));
    const found = await find({ env, slowSources: ['download', 'go install'], downloadService });
    expect(found).toMatchObject({
      path: cachedCli({ HOME: folder }),
      source: 'go install',
    });
    expect(said.join('\n')).toMatch(/download failed: .* answered 403[^]*4 to 9 minutes/);
  });

  it('lists everything it tried and what to do if nothing works', async () => {
    const downloadService = await startService((_, response) => response.writeHead(403).end());
    const go = script(join(folder, 'gobin', 'go'), `echo 'go version go1.19.8 linux/amd64'`);
    const env = environment(dirname(go));
    await expect(
      find({ env, slowSources: ['download', 'go install'], downloadService }),
    ).rejects.toMatchObject({
      code: 'temporal_unavailable',
      message: expect.stringMatching(
        /download: .*403[^]*go install: Go 1\.19 is too old: 1\.21 or newer is needed[^]*What to do: install the Temporal CLI[^]*TEMPORAL_ADDRESS/,
      ),
    });
  });

  it('reports the output of a failed build', async () => {
    const go = script(
      join(folder, 'gobin', 'go'),
      `[ "$1" = version ] && echo go1.26 && exit 0; echo 'no space left on device' >&2; exit 1`,
    );
    await expect(
      find({ env: environment(dirname(go)), slowSources: ['go install'] }),
    ).rejects.toMatchObject({ message: expect.stringContaining('no space left on device') });
  });
});
