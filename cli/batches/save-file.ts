import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { link, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { existing, isDevice, STDOUT } from './result-targets';

export interface SaveOptions {
  /** A path, or `-`. */
  readonly target: string;
  readonly force: boolean;
  readonly stdout: Writable;
}

/**
 * Lets `write` fill the target. A file appears whole or not at all, under its name only when it is
 * complete; without `force` one that has come into being meanwhile is left alone. stdout stays open.
 *
 * @throws invalid_request where the disk refuses; what `write` throws
 */
export async function saveFile(
  { target, force, stdout }: SaveOptions,
  write: (sink: Writable) => Promise<void>,
): Promise<void> {
  if (target === STDOUT) return diskWords(target, () => write(stdout));
  if (isDevice(target)) return diskWords(target, () => fill(target, 'a', write));
  const place = await realpath(target).catch(() => target);
  const part = join(dirname(place), `.${basename(place)}.${process.pid}.part`);
  try {
    await diskWords(target, async () => {
      await fill(part, 'w', write);
      await publish({ part, place, force });
    });
  } finally {
    await rm(part, { force: true });
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

async function publish(at: { part: string; place: string; force: boolean }): Promise<void> {
  if (at.force) return rename(at.part, at.place);
  // Unlike a rename, a link never replaces anything.
  await link(at.part, at.place);
}

async function diskWords(target: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    if (isNightshiftError(cause)) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw existing(target);
    throw new NightshiftError('invalid_request', `cannot write ${target}: ${message}`, { cause });
  }
}
