import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { NightshiftError } from '../../core/errors';
import type { AudioConfig } from '../../platform/config-audio';
import { SpoolRoom } from './spool-room';

/** A file of the spool. */
export interface SpoolFile {
  /** Appends all of `bytes`. */
  append(bytes: Buffer): Promise<void>;
  /** Reads into `into` from a position of the file. Returns the number of bytes; 0 at the end. */
  read(into: Buffer, position: number): Promise<number>;
  close(): Promise<void>;
}

/** The directory for bodies that are not kept in memory. */
export interface Spool {
  readonly room: SpoolRoom;
  /** @throws the error of the file system */
  create(): Promise<SpoolFile>;
}

/** Where a relative `spool.dir` begins: the default data directory of the other commands. */
const DATA_DIR = '.nightshift';
const OWN_FILE = /^body-[0-9a-f-]{36}$/;

/**
 * The spool of a directory, which is created when it is first needed.
 *
 * A file is removed from the directory as soon as it is open: it has no name while it is used, and the system frees it
 * with its last descriptor. So a process that is killed leaves nothing behind, and gateways can share a directory. Only a
 * kill between two system calls leaves an empty file, which the next start removes.
 */
export function createSpool(settings: AudioConfig['spool']): Spool {
  const dir = directoryOf(settings);
  const { max_bytes: maxBytes, sheddable_bytes: sheddableBytes } = settings;
  let isPrepared = false;
  return {
    room: new SpoolRoom({ maxBytes, sheddableBytes }),
    create: async () => {
      if (!isPrepared) await prepare(dir);
      isPrepared = true;
      return createFile(join(dir, `body-${randomUUID()}`));
    },
  };
}

/** Opens the spool of the settings. @throws config_invalid if files cannot be created in its directory */
export async function openSpool(settings: AudioConfig['spool']): Promise<Spool> {
  const spool = createSpool(settings);
  try {
    await (await spool.create()).close();
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    const message = `gateway.audio.spool.dir: cannot create files in ${directoryOf(settings)} (${code})`;
    throw new NightshiftError('config_invalid', message, { cause });
  }
  return spool;
}

function directoryOf({ dir }: AudioConfig['spool']): string {
  return resolve(DATA_DIR, dir);
}

async function prepare(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await removeLeftovers(dir);
}

/** A gateway that creates a file at this moment does not miss its name. */
async function removeLeftovers(dir: string): Promise<void> {
  const names = await readdir(dir);
  await Promise.all(names.filter((name) => OWN_FILE.test(name)).map((name) => remove(dir, name)));
}

async function remove(dir: string, name: string): Promise<void> {
  await unlink(join(dir, name)).catch(ignoreMissing);
}

async function createFile(path: string): Promise<SpoolFile> {
  const handle = await open(path, 'wx+', 0o600);
  try {
    await unlink(path).catch(ignoreMissing);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return {
    append: async (bytes) => {
      for (let at = 0; at < bytes.length;) {
        at += (await handle.write(bytes, at, bytes.length - at)).bytesWritten;
      }
    },
    read: async (into, position) => {
      return (await handle.read(into, 0, into.length, position)).bytesRead;
    },
    close: () => handle.close(),
  };
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
