import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ensureBuilt } from '../../cli/prepare.js';
import { createMetricsRegistry } from '../../platform/metrics';
import { startObservabilityServer } from '../../platform/observability-server';
import { packageRoot } from '../../platform/package-root';
import { freePort } from '../support/free-port';
import { exists, read, unknownWords } from './repository';

const text = read('Dockerfile');
/** One instruction a line, without comments. */
const instructions = text
  .replace(/^ *#.*\n/gm, '')
  .replace(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line !== '');
const finalStage = instructions.slice(instructions.findLastIndex((line) => /^FROM /.test(line)));

/** Arguments of the instructions of one kind. */
function all(kind: string, from: readonly string[] = instructions): string[] {
  return from
    .filter((line) => line.startsWith(`${kind} `))
    .map((line) => line.slice(kind.length + 1));
}

/** Files that the final stage gets: path in the build stage, folder in the image. */
const copied = all('COPY', finalStage).flatMap((line) => {
  const words = line.replace('--from=build ', '').split(' ');
  const target = words.pop() ?? '';
  return words.map((word) => ({
    source: word.replace('/build/', ''),
    target,
    isOne: words.length === 1,
  }));
});

describe('Dockerfile', () => {
  it('names commands that exist', () => {
    const named = /docker run nightshift (.*)/.exec(text)?.[1]?.split(' | ') ?? [];
    expect(named.length).toBeGreaterThan(0);
    expect(named.flatMap((command) => unknownWords([command]))).toEqual([]);
  });

  it('pins its base image by version and digest, and uses one for both stages', () => {
    const bases = all('FROM').map((line) => line.replace(' AS build', ''));
    expect(bases).toHaveLength(2);
    expect(new Set(bases).size).toBe(1);
    expect(bases[0]).toMatch(/^node:\d+\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/);
  });

  it('copies files that exist and that the build context has', () => {
    const ignored = read('.dockerignore').trim().split('\n');
    const made = ['dist', 'node_modules'];
    const sources = copied.map(({ source }) => source).filter((name) => !made.includes(name));
    expect(sources.filter((name) => !exists(name))).toEqual([]);
    const left = sources.filter((name) => ignored.some((one) => `${name}/`.startsWith(`${one}/`)));
    expect(left).toEqual([]);
    // Its absence tells cli/prepare.js that there is nothing to install or build.
    expect(sources).not.toContain('tsconfig.build.json');
  });

  it('runs without root, and writes only to its volumes', () => {
    expect(all('USER')).toEqual(['1000:1000']);
    const made = /mkdir (.*) &&/.exec(all('RUN', finalStage).join('\n'))?.[1]?.split(' ');
    expect(JSON.parse(all('VOLUME')[0] ?? '')).toEqual(made);
  });

  it('contains all that the program needs to run', () => {
    ensureBuilt();
    const app = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-image-'));
    try {
      for (const { source, target, isOne } of copied) {
        const isFolder = isOne && !target.endsWith('/');
        const place = path.join(app, target, isFolder ? '' : path.basename(source));
        fs.mkdirSync(path.dirname(place), { recursive: true });
        fs.symlinkSync(path.join(packageRoot(), source), place);
      }
      const entry = JSON.parse(all('ENTRYPOINT')[0] ?? '') as string[];
      // Links of this test must not lead back to the repository, which would be built.
      const flags = ['--preserve-symlinks', '--preserve-symlinks-main', ...entry.slice(1)];
      const done = spawnSync(process.execPath, [...flags, '--version'], {
        cwd: app,
        encoding: 'utf8',
      });
      expect(done).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
      const [folder] = copied.filter(({ source }) => source.endsWith('migrations'));
      expect(fs.readdirSync(path.join(app, folder?.target ?? '')).length).toBeGreaterThan(0);
    } finally {
      fs.rmSync(app, { recursive: true });
    }
  });

  it('keeps the native library of its platform only', () => {
    const command = all('RUN').find((line) => line.includes('core-bridge')) ?? '';
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-image-'));
    const bridge = 'node_modules/@temporalio/core-bridge';
    const releases = fs.readdirSync(path.join(packageRoot(), bridge, 'releases'));
    expect(releases.length).toBeGreaterThan(1);
    try {
      for (const release of releases) {
        fs.mkdirSync(path.join(folder, bridge, 'releases', release), { recursive: true });
        fs.writeFileSync(path.join(folder, bridge, 'releases', release, 'index.node'), '');
      }
      for (const file of ['common.js', 'package.json']) {
        fs.copyFileSync(path.join(packageRoot(), bridge, file), path.join(folder, bridge, file));
      }
      const done = spawnSync('/bin/sh', ['-euc', command], { cwd: folder, encoding: 'utf8' });
      expect(done).toMatchObject({ status: 0, stderr: '' });
      const kept = fs.readdirSync(path.join(folder, bridge, 'releases'));
      expect(kept).toEqual([
        expect.stringMatching(process.arch === 'x64' ? /^x86_64/ : /^aarch64/),
      ]);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });
});

describe('the health check of the image', () => {
  const command = JSON.parse(
    /CMD (\[.*\])/.exec(all('HEALTHCHECK')[0] ?? '')?.[1] ?? '[]',
  ) as string[];

  /** Exit status of the check; not synchronous, because it asks a server of this process. */
  function check(
    args: readonly string[],
    env: Record<string, string> = {},
  ): Promise<number | null> {
    const [, script = ''] = command;
    const child = spawn(process.execPath, [script, ...args], {
      cwd: packageRoot(),
      env: { ...process.env, ...env },
      stdio: 'ignore',
    });
    return new Promise((resolve) => child.once('close', resolve));
  }

  it.each(['API', 'WORKER'])('succeeds while the %s answers on its port', async (process) => {
    const registry = createMetricsRegistry('worker');
    const server = await startObservabilityServer({ host: '127.0.0.1', port: 0, registry });
    const name = `NIGHTSHIFT__${process}__OBSERVABILITY_PORT`;
    try {
      expect(await check([], { [name]: new URL(server.url).port })).toBe(0);
    } finally {
      await server.close();
    }
  });

  it('fails if nothing answers', async () => {
    expect(await check([String(await freePort())])).toBe(1);
  });
});
