import { open, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FILE_MODE, makeFolder, syncFolderAndAbove } from '../objects/durable-folder';

/** A new file that is appended to. */
export interface AppendFile {
  /** Returns the bytes written: fewer than given if the disk became full on the way. */
  append(bytes: Uint8Array): Promise<number>;
  /** Makes appended bytes and the name of the file survive power loss. */
  sync(): Promise<void>;
  close(): Promise<void>;
  /** Deletes the file; call `close` first. */
  remove(): Promise<void>;
}

/** Opens a new append file. Fails if the file exists. */
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
