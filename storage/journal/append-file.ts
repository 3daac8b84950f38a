import { open, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FILE_MODE, makeFolder, syncFolderAndAbove } from '../objects/durable-folder';

/** A new file that grows at its end: what a segment needs of a filesystem. */
export interface AppendFile {
  /** Bytes written, fewer than given where the disk ran full in the middle. */
  append(bytes: Uint8Array): Promise<number>;
  /** Makes what was appended, and the file's name, survive power loss. */
  sync(): Promise<void>;
  close(): Promise<void>;
  /** Takes the file away; after `close`. */
  remove(): Promise<void>;
}

/** Opens a new append file. Fails where the file exists. */
export type OpenAppendFile = (path: string) => Promise<AppendFile>;

/** Creates the file exclusively (`O_EXCL`), with the folders above it. */
export const openAppendFile: OpenAppendFile = async (path) => {
  await makeFolder(dirname(path));
  const file = await open(path, 'wx', FILE_MODE);
  let isNameSynced = false;
  let size = 0;
  return {
    append: async (bytes) => {
      const { bytesWritten } = await file.write(bytes, 0, bytes.length, size);
      size += bytesWritten;
      return bytesWritten;
    },
    sync: async () => {
      await file.datasync();
      if (isNameSynced) return;
      await syncFolderAndAbove(dirname(path));
      isNameSynced = true;
    },
    close: () => file.close(),
    remove: () => unlink(path),
  };
};
