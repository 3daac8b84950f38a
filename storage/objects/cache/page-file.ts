import { randomBytes } from 'node:crypto';
import { mkdir, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallbackFile } from '../callback-file';
import { FILE_MODE } from '../durable-folder';
import { PAGE_BYTES } from './pages';

/** Numbered slots of {@link PAGE_BYTES} on a local disk. */
export interface PageDisk {
  readonly slots: number;
  /**
   * Fills `into` from byte `at` of a slot on, and from the slots behind it. `onRead` gets null, or an error, as when the
   * slots hold fewer bytes.
   */
  read(slot: number, at: number, into: Buffer, onRead: (error: unknown) => void): void;
  write(slot: number, bytes: Buffer): Promise<void>;
  close(): Promise<void>;
}

/**
 * Slots in one file that has no name: it is unlinked at once, so its bytes are gone when the process ends,
 * however it ends. `folder` is created; without it the file is in the folder for temporary files.
 */
export async function openPageFile(bytes: number, folder = tmpdir()): Promise<PageDisk> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, `nightshift-cache-${randomBytes(8).toString('hex')}`);
  const file = await open(path, 'wx+', FILE_MODE);
  await unlink(path);
  const callbackFile = new CallbackFile(file);
  return {
    slots: Math.floor(bytes / PAGE_BYTES),
    read: (slot, at, into, onRead) =>
      callbackFile.read(slot * PAGE_BYTES + at, into, (bytesRead, error) => {
        const isShort = bytesRead !== null && bytesRead < into.length;
        onRead(isShort ? new Error(`short read: ${bytesRead} of ${into.length}`) : error);
      }),
    write: async (slot, page) => {
      const { bytesWritten } = await file.write(page, 0, page.length, slot * PAGE_BYTES);
      if (bytesWritten < page.length) {
        throw new Error(`short write: ${bytesWritten} of ${page.length}`);
      }
    },
    close: () => callbackFile.close(),
  };
}
