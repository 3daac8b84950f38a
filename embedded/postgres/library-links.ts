import { lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Two names of a library, as paths that begin with `native/`. */
interface Link {
  /** The file, e.g. `native/lib/libpq.so.5.18`. */
  readonly source: string;
  /** A shorter name of it, e.g. `native/lib/libpq.so.5`. */
  readonly target: string;
}

/**
 * Creates the links to PostgreSQL's libraries that are missing in `native`, the folder of the platform's
 * npm package or a copy of it. A package cannot contain links, so this package creates them in a script
 * that runs after its installation. Many installations run no such scripts (`ignore-scripts`, npm 12
 * without an approval), and PostgreSQL would not find its libraries.
 *
 * @throws the error of the file system, e.g. if the folder is read-only
 */
export function createLibraryLinks(native: string): void {
  for (const { source, target } of missingLinks(native)) {
    try {
      symlinkSync(posix.relative(posix.dirname(target), source), inFolder(native, target));
    } catch (error) {
      // Another process creates the same links.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

function missingLinks(native: string): Link[] {
  return readLinks(native).filter(
    ({ target }) => lstatSync(inFolder(native, target), { throwIfNoEntry: false }) === undefined,
  );
}

/** Packages of some platforms have no links and no list. */
function readLinks(native: string): readonly Link[] {
  let text: string;
  try {
    text = readFileSync(join(native, 'pg-symlinks.json'), 'utf8');
  } catch {
    return [];
  }
  return JSON.parse(text) as readonly Link[];
}

function inFolder(native: string, name: string): string {
  return join(native, posix.relative('native', name));
}
