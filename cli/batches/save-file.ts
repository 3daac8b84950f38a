import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { link, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { fileExists, isDevice, STDOUT } from './result-targets';

/** Where a file is saved. */
export interface SaveOptions {
  /** A path, or `-`. */
  readonly target: string;
  readonly force: boolean;
  readonly stdout: Writable;
}

/**
 * Calls `write` to fill the target. A file appears under its name only when it is complete. Without
 * `force` it replaces no file, even one that was created meanwhile. stdout stays open.
 *
 * @throws invalid_request if the target cannot be written; what `write` throws
 */
export async function saveFile(
  { target, force, stdout }: SaveOptions,
  write: (sink: Writable) => Promise<void>,
): Promise<void> {
  if (target === STDOUT) return explainDiskErrors(target, () => write(stdout));
  if (isDevice(target)) return explainDiskErrors(target, () => fill(target, 'a', write));
  const place = await realpath(target).catch(() => target);
  const draft = join(dirname(place), `.${basename(place)}.${process.pid}.part`);
  try {
    await explainDiskErrors(target, async () => {
      await fill(draft, 'w', write);
      await publish({ draft, place, force });
    });
  } finally {
    await rm(draft, { force: true });
  }
}

async function fill(
  path: string,
  flags: 'a' | 'w',
  write: (sink: Writable) => Promise<void>,
): Promise<void> {
  const sink = createWriteStream(path, { flags });
  try {
    await once(sink, 'open');
    await write(sink);
    sink.end();
    await finished(sink);
  } finally {
    sink.destroy();
  }
}

async function publish(at: { draft: string; place: string; force: boolean }): Promise<void> {
  if (at.force) return rename(at.draft, at.place);
  // Unlike a rename, a link never replaces a file.
  await link(at.draft, at.place);
}

async function explainDiskErrors(target: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    if (isNightshiftError(cause)) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw fileExists(target);
    throw new NightshiftError('invalid_request', `cannot write ${target}: ${message}`, { cause });
  }
}
