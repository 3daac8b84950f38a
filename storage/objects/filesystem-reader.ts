import type { FileHandle } from 'node:fs/promises';
import type { ObjectReader } from '../object-store';
import { CallbackFile } from './callback-file';
import { asStoreError, mapped } from './filesystem-errors';
import { createWindowedReader } from './windowed-reader';

/** Reads from an open file, which it owns. */
export function createFileReader(file: FileHandle, size: number): ObjectReader {
  const callbackFile = new CallbackFile(file);
  return createWindowedReader({
    size,
    readInto: (position, into, onRead) =>
      callbackFile.read(position, into, (bytesRead, error) =>
        onRead(bytesRead, error === null ? null : asStoreError(error, 'read')),
      ),
    close: () => mapped('close', () => callbackFile.close()),
  });
}
