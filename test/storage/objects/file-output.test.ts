import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MergeMemory } from '../../../core/journal/merge-memory';
import { FileOutput } from '../../../storage/objects/file-output';

const MIB = 1024 * 1024;

let folder: string;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-output-'))));
afterEach(() => rmSync(folder, { recursive: true }));

async function written(pieces: readonly Buffer[], writes: number): Promise<Buffer> {
  const path = join(folder, 'file');
  const file = await open(path, 'wx');
  const output = new FileOutput(path, file, writes);
  try {
    for (const piece of pieces) await output.write(piece);
    await output.finish();
  } finally {
    await output.close();
    await file.close();
  }
  return readFileSync(path);
}

/** Random bytes in memory that allows direct writes. */
function aligned(bytes: number): Buffer {
  return MergeMemory.withProgram(1, bytes).take(bytes)!.fill(randomBytes(bytes));
}

/** The same in memory that does not. */
function unaligned(bytes: number): Buffer {
  return randomBytes(bytes + 1).subarray(1);
}

it.each<[string, () => Buffer[]]>([
  ['no bytes', () => []],
  ['aligned', () => [aligned(MIB), aligned(2 * MIB), aligned(MIB)]],
  ['unaligned', () => [unaligned(MIB), unaligned(2 * MIB)]],
  ['aligned, then not', () => [aligned(MIB), unaligned(MIB), aligned(MIB), unaligned(MIB)]],
  ['aligned, behind an odd length', () => [aligned(MIB), unaligned(5), aligned(MIB)]],
  ['aligned, with a rest', () => [aligned(65_536), aligned(MIB), aligned(MIB), unaligned(77)]],
])('writes pieces in their order, whatever their memory: %s', async (_, make) => {
  for (const writes of [1, 3]) {
    const pieces = make();
    expect((await written(pieces, writes)).equals(Buffer.concat(pieces))).toBe(true);
    rmSync(join(folder, 'file'));
  }
});

it('has no more writes in flight than it may', async () => {
  const path = join(folder, 'file');
  const file = await open(path, 'wx');
  const output = new FileOutput(path, file, 2);
  const pieces = Array.from({ length: 9 }, () => aligned(MIB));
  const expected = Buffer.concat(pieces);
  for (const [i, piece] of pieces.entries()) {
    await output.write(piece);
    // All but the last one are written, so their owner may overwrite them.
    if (i > 0) pieces[i - 1]!.fill(0);
  }
  await output.finish();
  await output.close();
  await file.close();
  expect(readFileSync(path).equals(expected)).toBe(true);
});

it.each([1, 3])('fails if the disk is full, with %i writes in flight', async (writes) => {
  const file = await open('/dev/full', 'w');
  const output = new FileOutput('/dev/full', file, writes);
  const write = async () => {
    for (let i = 0; i < 5; i++) await output.write(aligned(MIB));
    await output.finish();
  };
  await expect(write()).rejects.toMatchObject({ code: 'ENOSPC' });
  await output.close();
  await file.close();
});
