import { FRAME_HEADER_BYTES, FRAME_KIND, keepsAnswer } from '../../../core/journal/frame';
import type { JournalStore } from '../../../storage/journal/journal-store';
import type { ObjectStore } from '../../../storage/object-store';
import type { ResultLine } from '../execute/chunk-world';

/** A batch with one model. */
interface Lines {
  readonly batchId: string;
  /** Of each line in the input. */
  readonly offsets: readonly number[];
}

/** Line and status of each answer in the segments, in order of the lines; or of the kept answers. */
export async function readStatuses(
  journal: JournalStore,
  { batchId, offsets, kept }: Lines & { kept: boolean },
): Promise<[line: number, status: number][]> {
  const frames: [number, number][] = [];
  const scope = { batchId, safeModel: 'm' };
  for await (const { header, objectKey } of journal.scan(scope, { from: 0, to: offsets.length })) {
    // A seal repeats what is in segments.
    if (objectKey.includes('/seals/') || keepsAnswer(header) !== kept) continue;
    frames.push([offsets.indexOf(header.offset), header.status]);
  }
  return frames.sort(([a], [b]) => a - b);
}

/** The result lines of answers, by line number. */
export async function readResults(
  { store, journal }: { store: ObjectStore; journal: JournalStore },
  { batchId, offsets }: Lines,
): Promise<Map<number, ResultLine>> {
  const lines = new Map<number, ResultLine>();
  const range = { from: 0, to: offsets.length };
  for await (const ref of journal.scan({ batchId, safeModel: 'm' }, range)) {
    if (ref.header.kind === FRAME_KIND.retry) continue;
    const { objectKey, position, byteLength } = ref;
    const end = position + byteLength;
    const frame = await store.read(objectKey, { from: position, to: end });
    const line = JSON.parse(frame.subarray(FRAME_HEADER_BYTES).toString()) as ResultLine;
    lines.set(offsets.indexOf(ref.header.offset), line);
  }
  return lines;
}
