import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../platform/package-root';

/** The package as npm installed it. */
export interface InstalledPackage {
  readonly path: string;
  /** Files of the package, relative to it. */
  readonly files: readonly string[];
  readonly packedBytes: number;
}

const INSTALL_LIMIT_MS = 60_000;

/**
 * Packs this clone and installs the package into `folder` with npm, without install scripts. npm looks up
 * the newest versions that the package allows, so it needs the registry. If that does not answer within a
 * minute, the production packages of this clone are linked instead, in the versions of package-lock.json,
 * and a warning says so.
 */
export async function installPackage(folder: string): Promise<InstalledPackage> {
  const [packed] = JSON.parse(
    npm(packageRoot(), ['pack', '--json', '--pack-destination', folder]),
  ) as [{ filename: string; size: number; files: { path: string }[] }];
  fs.writeFileSync(path.join(folder, 'package.json'), '{"private":true}');
  const tarball = path.join(folder, packed.filename);
  try {
    npm(folder, ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', tarball]);
  } catch (error) {
    console.warn(`npm install failed, so the packages of this clone are used: ${String(error)}`);
    linkPackages(folder, tarball);
  }
  const files = packed.files.map((file) => file.path);
  const installed = path.join(folder, 'node_modules', 'nightshift');
  return { path: installed, files, packedBytes: packed.size };
}

function npm(cwd: string, args: readonly string[]): string {
  const done = spawnSync('npm', args, { cwd, encoding: 'utf8', timeout: INSTALL_LIMIT_MS });
  if (done.status === 0) return done.stdout;
  throw new Error(`npm ${args[0]}: ${done.error?.message ?? done.stderr}`);
}

/** Hard links, because Node resolves the packages of a symbolic link where the link points to. */
function linkPackages(folder: string, tarball: string): void {
  const root = packageRoot();
  fs.rmSync(path.join(folder, 'node_modules'), { recursive: true, force: true });
  const target = path.join(folder, 'node_modules', 'nightshift');
  fs.mkdirSync(target, { recursive: true });
  spawnSync('tar', ['-xzf', tarball, '-C', target, '--strip-components=1']);
  for (const name of productionPackages(root))
    linkFolder(path.join(root, name), path.join(folder, name));
  const bin = path.join(folder, 'node_modules', '.bin');
  fs.mkdirSync(bin, { recursive: true });
  // As npm does, whatever mode the file has in the archive.
  fs.chmodSync(path.join(target, 'cli', 'nightshift.js'), 0o755);
  fs.symlinkSync('../nightshift/cli/nightshift.js', path.join(bin, 'nightshift'));
}

function productionPackages(root: string): string[] {
  const lock = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([name, { dev }]) => name !== '' && dev !== true)
    .map(([name]) => name)
    .filter((name) => fs.existsSync(path.join(root, name)));
}

function linkFolder(from: string, to: string): void {
  fs.mkdirSync(to, { recursive: true });
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue;
    const source = path.join(from, entry.name);
    const copy = path.join(to, entry.name);
    if (entry.isDirectory()) linkFolder(source, copy);
    else if (entry.isSymbolicLink()) fs.symlinkSync(fs.readlinkSync(source), copy);
    else linkFile(source, copy);
  }
}

/** Copies if the folders are on different file systems. */
function linkFile(source: string, copy: string): void {
  try {
    fs.linkSync(source, copy);
  } catch {
    fs.copyFileSync(source, copy);
  }
}
