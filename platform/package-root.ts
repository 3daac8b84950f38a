import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NightshiftError } from '../core/errors';

/** A published package may have a scope. */
const OUR_NAME = /^(@[^/]+\/)?nightshift$/;

let cached: string | undefined;

/**
 * Absolute path of the folder with our `package.json`, both for code that runs from source and for code in
 * `dist/`. Files that are not compiled (migrations, examples) are read below it.
 *
 * @throws internal if there is no such folder above this file
 */
export function packageRoot(): string {
  cached ??= findRoot(__dirname);
  return cached;
}

function findRoot(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (OUR_NAME.test(packageName(folder) ?? '')) return folder;
    if (folder === dirname(folder)) {
      throw new NightshiftError('internal', `no package.json of nightshift above ${start}`);
    }
  }
}

function packageName(folder: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return (parsed as { name?: string }).name;
  } catch {
    return undefined;
  }
}
