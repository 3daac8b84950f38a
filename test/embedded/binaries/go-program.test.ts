import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { findGoProgram, type GoProgram } from '../../../embedded/binaries/go-program';
import { cachedProgram } from '../../../embedded/binaries/program-cache';
import { identify } from '../../../embedded/supervision/process-identity';
import { until } from '../../support/until';

const GADGET: GoProgram = {
  name: 'gadget',
  title: 'test program gadget',
  package: 'example.com/tools/cmd/gadget',
  version: 'v2.3.4',
  versionArguments: ['--version'],
  buildTime: '1 minute',
};
const PROGRAM = `#!/bin/sh\\necho gadget 2.3.4\\n`;
let folder: string;
let said: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-program-'));
  said = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

function script(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

const environment = (...paths: string[]) => ({
  PATH: [...paths, '/usr/bin', '/bin'].join(delimiter),
  HOME: folder,
});
const find = (env: Record<string, string>, program = GADGET) =>
  findGoProgram(program, { env, say: (line) => said.push(line) });
const cached = () => cachedProgram(GADGET, { HOME: folder });
const builds = () => readFileSync(join(folder, 'builds'), 'utf8').trim().split('\n');

/** A `go` that logs its arguments and writes the program as the real one does. */
function fakeGo(): string {
  return dirname(
    script(
      join(folder, 'gobin', 'go'),
      `[ "$1" = version ] && echo 'go version go1.26.8 linux/amd64' && exit 0
echo "$@ CGO_ENABLED=$CGO_ENABLED$GOFLAGS" >> ${folder}/builds
case "$1" in
  install) printf '${PROGRAM}' > "$GOBIN/gadget" && chmod +x "$GOBIN/gadget" ;;
  get) grep -q '^module' go.mod ;;
  build) printf '${PROGRAM}' > "$3" && chmod +x "$3" ;;
esac`,
    ),
  );
}

describe('finding a program that is built with Go', () => {
  it('builds it into the cache once, and finds it there', async () => {
    const env = environment(fakeGo());
    expect(await find(env)).toEqual({ path: cached(), source: 'go install' });
    expect(await find(env)).toEqual({ path: cached(), source: 'cache' });
    expect(builds()).toEqual(['install example.com/tools/cmd/gadget@v2.3.4 CGO_ENABLED=0']);
    expect(said.join('\n')).toContain('about 1 minute, once');
    expect(readdirSync(dirname(cached()))).toEqual(['gadget']);
  });

  it('builds a module with replace directives through a module that requires it', async () => {
    const env = environment(fakeGo());
    expect(await find(env, { ...GADGET, needsWrapper: true })).toMatchObject({ path: cached() });
    expect(builds()).toEqual([
      'get example.com/tools/cmd/gadget@v2.3.4 CGO_ENABLED=0',
      expect.stringMatching(/^build -o \S+\/gadget example\.com\/tools\/cmd\/gadget /),
    ]);
  });

  it('builds a program with tags, so that only a part of it is built', async () => {
    await find(environment(fakeGo()), { ...GADGET, tags: ['small', 'static'] });
    expect(builds()).toEqual([
      'install example.com/tools/cmd/gadget@v2.3.4 CGO_ENABLED=0-tags=small,static',
    ]);
  });

  it('builds once for two callers at the same time', async () => {
    const env = environment(fakeGo());
    const found = await Promise.all([find(env), find(env)]);
    expect(found.map(({ source }) => source).sort()).toEqual(['cache', 'go install']);
    expect(builds()).toHaveLength(1);
    expect(said.join('\n')).toContain(`process ${process.pid} is getting the test program gadget`);
  });

  it('waits for another process that builds, and takes what it built', async () => {
    const lock = join(dirname(cached()), 'lock');
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, JSON.stringify(identify(process.ppid)));
    const finding = find(environment(fakeGo()));
    await until(
      () => said.some((line) => line.includes(`process ${process.ppid} is`)),
      5_000,
      'a wait',
    );
    script(cached(), 'echo gadget');
    rmSync(lock);
    expect(await finding).toEqual({ path: cached(), source: 'cache' });
    expect(existsSync(join(folder, 'builds'))).toBe(false);
  });

  it('takes over the lock of a build that was killed', async () => {
    const lock = join(dirname(cached()), 'lock');
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, JSON.stringify({ pid: 2 ** 22 + 1, startedAt: 'boot/1' }));
    expect(await find(environment(fakeGo()))).toMatchObject({ source: 'go install' });
  });

  it('removes what a build or download that was killed has left', async () => {
    for (const draft of ['build-a1b2c3', 'unpack-a1b2c3']) {
      script(join(dirname(cached()), draft, 'gadget'), 'half a program');
    }
    await find(environment(fakeGo()));
    expect(readdirSync(dirname(cached()))).toEqual(['gadget']);
  });

  it('prefers a program on the PATH, and skips one that does not run', async () => {
    const broken = script(join(folder, 'broken', 'gadget'), 'exit 3');
    const good = script(join(folder, 'bin', 'gadget'), 'echo gadget 9.9');
    const env = environment(dirname(broken), dirname(good), fakeGo());
    expect(await find(env)).toEqual({ path: good, source: 'PATH' });
  });

  it('uses only the file that the environment variable names', async () => {
    const good = script(join(folder, 'elsewhere', 'mine'), 'echo gadget');
    const onPath = script(join(folder, 'bin', 'gadget'), 'echo gadget');
    const env = { ...environment(dirname(onPath)), NIGHTSHIFT_GADGET_PATH: good };
    expect(await find(env)).toEqual({ path: good, source: 'NIGHTSHIFT_GADGET_PATH' });
    const missing = { ...env, NIGHTSHIFT_GADGET_PATH: '/no/such/file' };
    await expect(find(missing)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/NIGHTSHIFT_GADGET_PATH: \/no\/such\/file/),
    });
  });

  it('says what it tried and what to do without the program and without Go', async () => {
    await expect(find({ PATH: join(folder, 'empty'), HOME: folder })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(
        /Found no test program gadget\.[^]*go install: Go is not installed[^]*What to do: install Go 1\.21/,
      ),
    });
    expect(readdirSync(dirname(cached()))).toEqual([]);
  });
});
