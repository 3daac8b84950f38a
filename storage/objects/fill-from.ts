import type { FileHandle } from 'node:fs/promises';

/** Reads from `position` until `buffer` is full or the file ends; returns how many bytes it has read. */
export async function fillFrom(
  file: FileHandle,
  position: number,
  buffer: Buffer,
): Promise<number> {
  let done = 0;
  while (done < buffer.length) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return done;
}
