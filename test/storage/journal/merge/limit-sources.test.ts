import { crc32 } from 'node:zlib';
import { NO_USAGE } from '../../../../core/batch/counts';
import { encodeFrame, FRAME_HEADER_BYTES, FRAME_KIND } from '../../../../core/journal/frame';
import { FrameMerge, MAX_OPEN_SOURCES } from '../../../../storage/journal/merge/frame-merge';
import type { FrameSource } from '../../../../storage/journal/merge/frame-source';
import { limitSources } from '../../../../storage/journal/merge/limit-sources';
import { createMemoryStore } from '../../../support/memory-store';

const BATCH = `batch_${'0123456789abcdef'.repeat(2)}`;

function frame(offset: number, text: string): Buffer {
  const fields = { offset, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
  return encodeFrame(fields, Buffer.from(text), crc32);
}

/**
 * Neighbouring groups share one offset each, so the answer at that offset shows which group won. Scratch
 * objects have random names, so their rank must come from the seals that they were made of.
 */
it('chooses the same answers in two passes as in one', async () => {
  const store = createMemoryStore();
  const groups = 6;
  const sources: FrameSource[] = [];
  for (let i = 0; i < groups * MAX_OPEN_SOURCES; i++) {
    const group = Math.floor(i / MAX_OPEN_SOURCES);
    const isFirst = i % MAX_OPEN_SOURCES === 0;
    // Every source spans all offsets, so all of them are open at once.
    const offsets = [0, ...(isFirst ? [10 + group, 11 + group] : []), 1_000_000 + i];
    const key = `seals/${String(i).padStart(4, '0')}`;
    const body = Buffer.concat(offsets.map((offset) => frame(offset, `group ${group}`)));
    await store.putIfAbsent(key, body);
    const [firstOffset, lastOffset] = [0, 1_000_000 + i];
    sources.push({ rankKey: key, key, start: 0, end: body.length, firstOffset, lastOffset });
  }
  const place = { store, batchId: BATCH, check: () => undefined };
  const limited = await limitSources(place, sources);
  expect(limited.sources).toHaveLength(groups);

  const merge = new FrameMerge(store, limited.sources);
  const chosen = new Map<number, string>();
  do {
    for (let next = merge.next(); next !== null; next = merge.next()) {
      const { offset, window, start, end } = next;
      if (offset < 1_000)
        chosen.set(offset, window.toString('utf8', start + FRAME_HEADER_BYTES, end));
    }
  } while (await merge.load());
  await merge.close();
  const expected = Array.from({ length: groups + 1 }, (_, i) => {
    return [10 + i, `group ${Math.max(0, i - 1)}`] as const;
  });
  expect([...chosen]).toEqual([[0, 'group 0'], ...expected]);
});
