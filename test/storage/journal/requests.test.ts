import { createObjectJournal } from '../../../storage/journal/object-journal';
import type { SealInfo } from '../../../storage/journal/journal-store';
import { openCachedStore } from '../../../storage/objects/cache/cached-store';
import { isOfBatch } from '../../../core/names/object-names';
import { countedStore, type CountedStore } from '../objects/cache/fixtures';
import { append, collect, SCOPE } from './fixtures';

/**
 * The numbers of requests that docs/design/journal.md#requests-to-the-store states, for chunks of 10,000
 * lines with answers of 600 bytes.
 */
const LINES = 10_000;
const ANSWER = 'x'.repeat(556);

/** What one process sees of a store: its journal, and what it asks the store for. */
async function openProcess(store: CountedStore) {
  const puts: string[] = [];
  const lists: string[] = [];
  const watched = {
    ...store,
    putIfAbsent: (...args: Parameters<typeof store.putIfAbsent>) => {
      puts.push(args[0]);
      return store.putIfAbsent(...args);
    },
    list: (...args: Parameters<typeof store.list>) => {
      lists.push(args[0]);
      return store.list(...args);
    },
  };
  const cached = await openCachedStore(watched, { bytes: 128 * 1024 * 1024, isLasting: isOfBatch });
  const journal = createObjectJournal({ store: cached });
  return { puts, lists, journal, close: () => cached.close() };
}

let store: CountedStore;
beforeEach(() => {
  store = countedStore();
});

/** Runs the journal's side of one chunk in a process of its own, and returns its requests. */
async function runChunk(from: number): Promise<{ seal: SealInfo; requests: object }> {
  const { journal, puts, lists, close } = await openProcess(store);
  const range = { from, to: from + LINES };
  await collect(journal.scan(SCOPE, range));
  const writer = journal.openWriter(SCOPE, range);
  for (let i = 0; i < LINES; i++) append(writer, from + i, ANSWER);
  await writer.flush();
  const readsBefore = store.reads.length;
  const seal = await journal.writeSeal(SCOPE, range, writer.frames);
  const readsOfSeal = store.reads.length - readsBefore;
  await writer.close();
  await close();
  const segments = puts.filter((key) => key.endsWith('.seg')).length;
  return { seal, requests: { lists: lists.length, segments, readsOfSeal, heads: store.heads } };
}

it('are few for a chunk of a small batch, and none of them reads what it wrote', async () => {
  expect((await runChunk(0)).requests).toEqual({ lists: 2, segments: 6, readsOfSeal: 0, heads: 0 });
});

it('are as few for a chunk in the middle of a large batch', async () => {
  const { requests } = await runChunk(1_234_567);
  expect(requests).toEqual({ lists: 2, segments: 6, readsOfSeal: 0, heads: 0 });
});

it('are one more beside many chunks of later ranges', async () => {
  const { journal, close } = await openProcess(store);
  const writer = journal.openWriter(SCOPE, { from: LINES, to: LINES + 60 });
  for (let i = 0; i < 60; i++) append(writer, LINES + i, ANSWER);
  await writer.flush();
  for (const [i, frame] of writer.frames.entries()) {
    await journal.writeSeal(SCOPE, { from: LINES + i, to: LINES + i + 1 }, [frame]);
  }
  await writer.close();
  await close();
  expect((await runChunk(0)).requests).toMatchObject({ lists: 3 });
});

it('are one for each segment when another process goes on', async () => {
  await runChunk(0);
  store.reads.length = 0;
  const { journal, close } = await openProcess(store);
  const isSegment = ({ key }: { key: string }) => key.endsWith('.seg');
  expect(await collect(journal.scan(SCOPE, { from: 0, to: LINES }, isSegment))).toHaveLength(LINES);
  expect(store.reads).toHaveLength(6);
  expect(store.heads).toBe(0);
  await close();
});

it('are a few for each seal when another process merges them', async () => {
  const chunks = [await runChunk(0), await runChunk(LINES), await runChunk(2 * LINES)];
  const seals = chunks.map(({ seal }) => seal);
  store.reads.length = 0;
  const { journal, close } = await openProcess(store);
  const answers = await journal.openAnswers(SCOPE.batchId, seals, () => undefined);
  let lines = 0;
  do while (answers.next() !== null) lines++;
  while (await answers.load());
  await answers.close();
  expect(lines).toBe(3 * LINES);
  // Of each seal of 6 MiB: both ends, its first window, twice 1 MiB, 2 MiB, and the rest.
  expect(store.reads.length).toBeLessThanOrEqual(7 * seals.length);
  expect(store.heads).toBe(3);
  await close();
});
