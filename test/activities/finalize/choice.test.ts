import { crc32 } from 'node:zlib';
import { condense } from '../../../activities/finalize/condense';
import { FrameMerge, MAX_OPEN_SOURCES } from '../../../activities/finalize/merge-frames';
import type { FrameSource } from '../../../activities/finalize/seal-cursor';
import { NO_USAGE } from '../../../core/batch/counts';
import { encodeFrame, FRAME_HEADER_BYTES, FRAME_KIND } from '../../../core/journal/frame';
import { createMemoryStore } from '../../support/memory-store';
import { BATCH, BatchPlace } from './fixtures';

function frame(offset: number, text: string): Buffer {
  const fields = { offset, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
  return encodeFrame(fields, Buffer.from(text), crc32);
}

test('of two answers to one line in the same segment, the first one is delivered', async () => {
  const place = await BatchPlace.create([{ model: 'm' }, { model: 'm' }]);
  const offset = place.planOf('m')[0]!.offset;
  const scope = { batchId: BATCH, safeModel: 'm' };
  const writer = place.journal.openWriter(scope, { from: 0, to: 2 });
  for (const text of ['first', 'second']) {
    const bytes = frame(offset, text);
    const header = { offset, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
    writer.append({ ...header, payloadLength: text.length }, bytes);
  }
  await writer.close();
  await place.finalize('cancelled');
  expect(await place.resultLines('output')).toEqual(['first']);
  await place.remove();
});

/**
 * Neighbouring groups share one offset each, so the answer at that offset shows which group won.
 * Scratch objects have random names: the order must come from the seals they were made of.
 */
test('a merge in two passes chooses the same answers as one pass would', async () => {
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
  const condensed = await condense(place, sources);
  expect(condensed.sources).toHaveLength(groups);

  const merge = new FrameMerge(store, condensed.sources);
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
