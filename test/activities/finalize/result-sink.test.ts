import { ResultSink } from '../../../activities/finalize/result-sink';
import type { ObjectBody } from '../../../storage/object-store';
import { createMemoryStore } from '../../support/memory-store';

/** Lines of many sizes: within a block, at its end, and longer than all blocks together. */
const SIZES = [0, 1, 65_534, 65_536, 10, 2_097_151, 2_097_152, 5, 17_000_000, 300_000, 0];
const LINES = SIZES.map((bytes, i) => Buffer.alloc(bytes, `line ${i} `));
const FILE = Buffer.concat(LINES.flatMap((line) => [line, Buffer.from('\n')]));

const store = createMemoryStore();

async function write(sink: ResultSink): Promise<void> {
  for (const line of LINES) {
    sink.writeLine(Buffer.concat([Buffer.from('head'), line]), 4, 4 + line.length);
    if (sink.isFull) await sink.drained();
  }
}

const MEMORY: [string, () => Buffer | null][] = [
  ['its own', () => null],
  ['that is given', () => Buffer.alloc(8 * 1024 * 1024)],
];

it.each(MEMORY)('writes lines of any length from memory: %s', async (name, memory) => {
  const key = `files/${name.replaceAll(' ', '-')}`;
  const sink = await ResultSink.open(store, key, memory());
  await write(sink);
  expect(await sink.end()).toEqual({ bytes: FILE.length });
  expect(store.objects.get(key)!.equals(FILE)).toBe(true);
});

it('writes no object without lines', async () => {
  const sink = await ResultSink.open(store, 'files/none');
  expect(await sink.end()).toBeNull();
  expect(store.objects.has('files/none')).toBe(false);
});

it.each(MEMORY)(
  'leaves a piece untouched until the next one is requested: %s',
  async (_name, memory) => {
    const taken: Buffer[] = [];
    const putIfAbsent = async (_: string, body: ObjectBody) => {
      let last: Uint8Array = Buffer.alloc(0);
      for await (const piece of body as AsyncIterable<Uint8Array>) {
        last = piece;
        // Whoever fills blocks is given time to fill others.
        await new Promise((resolve) => setImmediate(resolve));
        taken.push(Buffer.from(last));
      }
      return 'created' as const;
    };
    const sink = await ResultSink.open({ ...store, putIfAbsent }, 'files/kept', memory());
    await write(sink);
    await sink.end();
    expect(Buffer.concat(taken).equals(FILE)).toBe(true);
  },
);
