import type { ChunkLine } from '../../../activities/execute/chunk-ledger';
import { CustomIds, type CustomIdSource } from '../../../activities/delegate/custom-ids';

/** How the ids of lines are read when results come in some order (docs/design/delegation.md#collecting). */

interface Scene {
  readonly lines?: number;
  readonly blockLines?: number;
  readonly idChars?: number;
  readonly isAnswered?: (position: number) => boolean;
}

/** A part of lines with ids `<position>-xxx`, and the positions that were read one by one. */
function open({ lines = 1_000, blockLines = lines, idChars = 8, isAnswered = () => false }: Scene) {
  const reads: number[] = [];
  const idOf = (position: number) => `${position}-`.padEnd(idChars, 'x');
  const ledger = {
    block: (position: number) => {
      const from = Math.floor(position / blockLines) * blockLines;
      return { from, to: Math.min(from + blockLines, lines) };
    },
    isAnswered,
    line: lineAt,
  };
  const reader = {
    read: (offset: number) => {
      reads.push(offset);
      return Promise.resolve(Buffer.from(`{"body":{},"custom_id":"${idOf(offset)}"}`));
    },
  };
  const heartbeat = { check: () => undefined };
  const ids = new CustomIds({ ledger, reader, heartbeat } as unknown as CustomIdSource);
  return { reads, idOf, read: (position: number) => ids.of(lineAt(position)) };
}

/** The offset of a line stands for its position. */
function lineAt(position: number): ChunkLine {
  return { position, offset: position, length: 1 } as ChunkLine;
}

/** Lines that are read alone before a block is: the first one of all, and 64 that jump. */
const ALONE = 65;

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
/** Every position once, with a jump after each. */
const scattered = (lines: number) => range(0, lines).map((i) => (i * 389) % lines);

it('reads lines whose results come in order one after the other', async () => {
  const { read, reads, idOf } = open({});
  for (const position of range(0, 1_000)) expect(await read(position)).toBe(idOf(position));
  expect(reads).toEqual(range(0, 1_000));
});

it('reads the lines of a block once, in order, when results jump', async () => {
  const { read, reads, idOf } = open({});
  for (const position of scattered(1_000)) expect(await read(position)).toBe(idOf(position));
  expect(reads.slice(ALONE)).toEqual(range(0, 1_000));
});

it('reads only the blocks in which results jump', async () => {
  const { read, reads } = open({ lines: 2_000, blockLines: 1_000 });
  for (const position of scattered(1_000)) await read(position);
  for (const position of range(1_000, 1_010)) await read(position);
  expect(reads.filter((position) => position >= 1_000)).toEqual(range(1_000, 1_010));
});

it('reads no line that has an answer', async () => {
  const { read, reads } = open({ isAnswered: (position) => position % 2 === 0 });
  for (const position of scattered(1_000)) if (position % 2 === 1) await read(position);
  expect(reads.filter((position) => position % 2 === 0)).toEqual([]);
});

it('keeps no more than 4 Mi characters of long ids, and reads the others alone', async () => {
  const { read, reads, idOf } = open({ lines: 10_000, idChars: 512 });
  let wrong = 0;
  for (const position of scattered(10_000)) if ((await read(position)) !== idOf(position)) wrong++;
  expect(wrong).toBe(0);
  const kept = (4 * 1024 * 1024) / 512;
  const others = scattered(10_000)
    .slice(ALONE)
    .filter((position) => position >= kept);
  expect(reads.slice(ALONE)).toEqual([...range(0, kept), ...others]);
});
