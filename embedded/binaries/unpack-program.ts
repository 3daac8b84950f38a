import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { NightshiftError } from '../../core/errors';

/** Far above the size of the program, about 150 MB. */
const MAX_PROGRAM_BYTES = 1_000_000_000;

/**
 * Writes the file `name` of a tar archive, gzipped or not, to `target` and makes it executable. The
 * target appears only when the whole archive was read without an error.
 *
 * The archive comes from the network and is unpacked by a process that may be root. So only a plain file
 * of that name and a plausible size is unpacked: no links, no folders, no paths that lead elsewhere. It is
 * unpacked into a new folder, so no existing link can redirect the write. The file belongs to this user,
 * not to the owner that the archive names.
 *
 * @throws object_missing if the archive has no such file, and errors of reading and unpacking
 */
export async function unpackProgram(
  archive: Readable,
  name: string,
  target: string,
  maxBytes = MAX_PROGRAM_BYTES,
): Promise<void> {
  // Loaded on demand, because it costs 15 ms and 5 MB in every process that loads it.
  const { extract } = await import('tar');
  const draft = mkdtempSync(join(dirname(target), 'unpack-'));
  try {
    const unpack = extract({
      cwd: draft,
      strict: true,
      preserveOwner: false,
      filter: (path, entry) =>
        'type' in entry &&
        entry.type === 'File' &&
        entry.size <= maxBytes &&
        normalize(path) === name,
    });
    await pipeline(archive, unpack);
    const program = join(draft, name);
    if (!existsSync(program)) {
      const message = `the archive has no file ${name} of at most ${maxBytes} bytes`;
      throw new NightshiftError('object_missing', message);
    }
    chmodSync(program, 0o755);
    renameSync(program, target);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    archive.destroy();
  }
}
