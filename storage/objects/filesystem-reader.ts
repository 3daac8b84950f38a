import type { FileHandle } from 'node:fs/promises';
import type { ObjectReader } from '../object-store';
import { mapped } from './filesystem-errors';
import { fillFrom } from './fill-from';
import { createWindowedReader } from './windowed-reader';

/** Reads from an open file, which it owns. */
export function createFileReader(file: FileHandle, size: number): ObjectReader {
  return createWindowedReader({
    size,
    readInto: (position, into) => mapped('read', () => fillFrom(file, position, into)),
    close: () => mapped('close', () => file.close()),
  });
}
