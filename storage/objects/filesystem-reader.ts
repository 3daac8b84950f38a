import type { FileHandle } from 'node:fs/promises';
import type { ObjectReader } from '../object-store';
import { mapped } from './filesystem-errors';
import { createWindowedReader } from './windowed-reader';

/** Reads from an open file, which it owns. */
export function createFileReader(file: FileHandle, size: number): ObjectReader {
  return createWindowedReader({
    size,
    readInto: (position, into) => mapped('read', () => fill(file, position, into)),
    close: () => mapped('close', () => file.close()),
  });
}

/** Reads until `buffer` is full or the file ends; returns how many bytes it has read. */
async function fill(file: FileHandle, position: number, buffer: Buffer): Promise<number> {
  let done = 0;
  while (done < buffer.length) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return done;
}
