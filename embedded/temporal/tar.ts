import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { NightshiftError } from '../../core/errors';

const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const SIZE_AT = 124;
const SIZE_BYTES = 12;

/**
 * Writes one file of a tar archive to `target`, executable; the file appears only when it is whole.
 * Reads the format of ustar, as far as an archive of a few plain files with short names needs it.
 *
 * @throws object_missing where the archive holds no file called `wanted`
 */
export async function extractFromTar(
  archive: Readable,
  wanted: string,
  target: string,
): Promise<void> {
  const draft = `${target}.${process.pid}`;
  try {
    await pipeline(fileInTar(archive, wanted), createWriteStream(draft, { mode: 0o755 }));
    await rename(draft, target);
  } finally {
    await rm(draft, { force: true });
    archive.destroy();
  }
}

/** The bytes of the file called `wanted`, piece by piece. */
async function* fileInTar(archive: Readable, wanted: string): AsyncGenerator<Buffer> {
  const reader = createByteReader(archive);
  for (;;) {
    const header = await reader.exactly(BLOCK_BYTES);
    const name = textAt(header, 0, NAME_BYTES);
    if (name === '') break;
    const size = Number.parseInt(textAt(header, SIZE_AT, SIZE_BYTES), 8);
    const padding = (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
    if (name.replace(/^\.\//, '') === wanted) {
      yield* reader.upTo(size);
      return;
    }
    for await (const skipped of reader.upTo(size + padding)) void skipped;
  }
  throw new NightshiftError('object_missing', `the archive holds no file called ${wanted}`);
}

function textAt(block: Buffer, at: number, length: number): string {
  const text = block.toString('latin1', at, at + length);
  return (text.split('\0', 1)[0] ?? '').trim();
}

interface ByteReader {
  exactly(bytes: number): Promise<Buffer>;
  /** Exactly `bytes`, in the pieces they come in. */
  upTo(bytes: number): AsyncGenerator<Buffer>;
}

function createByteReader(source: Readable): ByteReader {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let rest: Buffer = Buffer.alloc(0);
  const take = async (most: number): Promise<Buffer> => {
    if (rest.length === 0) {
      const next = await chunks.next();
      if (next.done === true)
        throw new NightshiftError('object_corrupt', 'the archive ends too early');
      rest = next.value;
    }
    const piece = rest.subarray(0, most);
    rest = rest.subarray(piece.length);
    return piece;
  };
  async function* upTo(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      const piece = await take(left);
      left -= piece.length;
      if (piece.length > 0) yield piece;
    }
  }
  return {
    upTo,
    async exactly(bytes) {
      const pieces: Buffer[] = [];
      for await (const piece of upTo(bytes)) pieces.push(piece);
      return Buffer.concat(pieces);
    },
  };
}
