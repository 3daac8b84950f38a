import { execFileSync, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { transformSync } from '@swc/core';
import { packageRoot } from '../../platform/package-root';

/** Whether this clone has the commit; a shallow clone or an archive may not. */
export function hasCommit(commit: string): boolean {
  const object = `${commit}^{commit}`;
  return spawnSync('git', ['cat-file', '-e', object], { cwd: packageRoot() }).status === 0;
}

/**
 * Builds the product of an earlier commit in a new folder, with the packages of this checkout. Takes some
 * seconds. The caller removes the folder.
 */
export function buildRelease(commit: string): string {
  const root = mkdtempSync(join(tmpdir(), `nightshift-${commit.slice(0, 7)}-`));
  const archive = execFileSync('git', ['archive', commit], {
    cwd: packageRoot(),
    maxBuffer: 256 * 1024 * 1024,
  });
  execFileSync('tar', ['-x', '-C', root], { input: archive });
  symlinkSync(join(packageRoot(), 'node_modules'), join(root, 'node_modules'));
  for (const room of Object.keys(JSON.parse(readFileSync(join(root, 'rooms.json'), 'utf8')))) {
    compile(root, room);
  }
  execFileSync(process.execPath, [join(root, 'dist', 'workers', 'bundle-workflows.js')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return root;
}

function compile(root: string, room: string): void {
  for (const name of readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })) {
    const source = join(root, room, name);
    const target = join(root, 'dist', room, name.replace(/\.ts$/, '.js'));
    if (!/\.(ts|js)$/.test(name) || name.endsWith('.d.ts')) continue;
    mkdirSync(dirname(target), { recursive: true });
    const text = readFileSync(source, 'utf8');
    writeFileSync(target, name.endsWith('.ts') ? toJavaScript(text) : text);
  }
}

function toJavaScript(text: string): string {
  return transformSync(text, {
    jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
    module: { type: 'commonjs' },
  }).code;
}
