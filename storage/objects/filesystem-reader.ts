import type { FileHandle } from 'node:fs/promises';
import type { ObjectReader } from '../object-store';
import { mapped } from './filesystem-errors';
import { ReadAhead } from './read-ahead';

/**
 * Reads from an open file, which it owns. All file operations are asynchronous: a network share may hang
 * for minutes, and a synchronous read would block heartbeats, health checks and all other chunks.
 */
export function createFileReader(file: FileHandle, size: number): ObjectReader {
  let closing: Promise<void> | null = null;
  const readInto = (position: number, into: Buffer) => fill(file, position, into);
  const ahead = new ReadAhead(readInto, size);
  const targetOf = (position: number, length: number, into?: Buffer): Buffer => {
    const inside = Math.max(0, Math.min(length, size - position));
    return into?.subarray(0, inside) ?? Buffer.allocUnsafe(inside);
  };
  return {
    size,
    read: (position, length, into) =>
      mapped('read', async () => {
        const target = targetOf(position, length, into);
        if (ahead.serve(position, target) || (await ahead.load(position, target))) return target;
        return target.subarray(0, await fill(file, position, target));
      }),
    readNow: (position, length, into) => {
      if (closing !== null) return null;
      const target = targetOf(position, length, into);
      return ahead.serve(position, target) ? target : null;
    },
    close: () => (closing ??= mapped('close', () => file.close())),
  };
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
